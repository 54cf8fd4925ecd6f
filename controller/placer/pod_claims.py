"""The claims of a pod, as they are placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controller.allocator.claim_request import ClaimRequest
from dra_driver.model.claims.claim import Object, allocation


@dataclass(frozen=True, slots=True)
class PodClaims:
    """`wanted` are the unallocated claims that this driver serves; `ours` all that it serves, by
    their names in the pod. Neither has what a claim asks of other drivers. `with_others` are all
    unallocated claims with it, those for other drivers included, as far as it is understood; empty
    if that is nothing. While devices of other drivers are not known, the claims `await_others`.

    `allocated` are the pod's allocated claims, also those of other drivers,
    and `volumes` the node selectors (core/v1) of its volumes. A pod with limits, on a cluster
    without DRA, has the claim that its limits mean (`controller.extender.claim_for_limits`)."""

    pod: Object
    wanted: Sequence[ClaimRequest]
    ours: Mapping[str, Object] = field(default_factory=dict)
    allocated: Sequence[Object] = ()
    volumes: Sequence[Object] = ()
    with_others: Sequence[ClaimRequest] = ()
    await_others: bool = False

    @property
    def together(self) -> Sequence[ClaimRequest]:
        """All that is to be had on one node."""
        return self.with_others or self.wanted

    @property
    def selectors(self) -> list[tuple[Object, str]]:
        """The node selectors that hold for the pod beside its own, each with the reason why it
        excludes nodes."""
        of_claims = ((allocation(claim) or {}).get("nodeSelector") for claim in self.allocated)
        return [
            *(
                (selector, "not where the pod's other claims are")
                for selector in filter(None, of_claims)
            ),
            *((selector, "not where the pod's volumes are") for selector in self.volumes),
        ]
