"""The claims of one prepare call, a row each, which the steps of the call fill in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.errors import GcuError
from dra_driver.node.checkpoint.ledger import PreparedClaim
from dra_driver.node.checkpoint.records import PreparedDevices


@dataclass(slots=True)
class CallClaim:
    """One claim of a call.

    `held` is set if it is prepared already. Otherwise `object` is what the API server has, and
    `devices` are to be prepared. After an `error` nothing more is done for the claim.
    """

    ref: ClaimRef
    held: PreparedClaim | None = None
    object: Object | None = None
    devices: PreparedDevices = ()
    error: GcuError | None = None

    @property
    def is_planned(self) -> bool:
        """Whether its `devices` are to be prepared."""
        return self.held is None and self.error is None


@dataclass(slots=True)
class PrepareCall:
    """All claims of a call, by UID. ``others`` are not of the call, but were read with its claims
    (`dra_driver.node.visibility.other_claims`)."""

    claims: Mapping[str, CallClaim]
    others: Mapping[str, Object | GcuError] = field(default_factory=dict)

    @property
    def refs(self) -> dict[str, ClaimRef]:
        """By UID."""
        return {uid: claim.ref for uid, claim in self.claims.items()}

    @property
    def planned(self) -> dict[str, CallClaim]:
        """The claims whose devices are to be prepared, by UID."""
        return {uid: claim for uid, claim in self.claims.items() if claim.is_planned}
