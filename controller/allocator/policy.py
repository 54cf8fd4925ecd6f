"""What is preferred where several choices fit: as is set for all, and as the claims say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controller.allocator.claim_request import ClaimRequest
from controller.allocator.device_request import DeviceRequest
from dra_driver.model.packing import Packing


@dataclass(frozen=True, slots=True)
class Policy:
    """For nodes and for the cards of a node separately."""

    nodes: Packing = Packing.BINPACK
    cards: Packing = Packing.BINPACK

    def for_claims(self, wanted: Sequence[ClaimRequest]) -> Policy:
        """With what the claims themselves say of nodes: all of a pod's claims are served on one, so
        where they differ, the pod is spread. Of cards each request says what holds for it."""
        said = {each.packing.nodes for each in _demands(wanted)} - {None}
        if not said:
            return self
        nodes = Packing.SPREAD if Packing.SPREAD in said else Packing.BINPACK
        return Policy(nodes, self.cards)

    def cards_for(self, demand: DeviceRequest) -> Packing:
        """What holds for a request that asks this."""
        return demand.packing.cards or self.cards

    def spreads(self, wanted: Sequence[ClaimRequest]) -> bool:
        """Whether anything of the claims is to be kept apart from something; `self` being the
        policy for them."""
        return self.nodes is Packing.SPREAD or any(
            self.cards_for(each) is Packing.SPREAD for each in _demands(wanted)
        )


def _demands(wanted: Sequence[ClaimRequest]) -> Iterator[DeviceRequest]:
    for each in wanted:
        for request in each.requests:
            for exact in request.alternatives:
                yield exact.demand
