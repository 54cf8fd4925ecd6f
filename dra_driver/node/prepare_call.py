"""The claims of one prepare call, a row each, which the steps of the call fill in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


PrepareCall = Mapping[str, CallClaim]
"""All claims of a call, by UID."""


def planned(call: PrepareCall) -> dict[str, CallClaim]:
    """The claims whose devices are to be prepared, by UID."""
    return {uid: each for uid, each in call.items() if each.held is None and each.error is None}
