"""How nodes and cards are chosen for the claims of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from controller.allocator.claim_request import ClaimRequest
from controller.allocator.device_request import DeviceRequest
from controller.allocator.packing.strategy import AS_PUBLISHED, STRATEGIES, Strategy
from dra_driver.model.claims.packing import Packing


@dataclass(frozen=True, slots=True)
class Policy:
    """For nodes and for the cards of a node separately, where the claims say nothing.

    `by_scheduler`: kube-scheduler chooses the devices of a node."""

    by_scheduler: ClassVar[bool] = False

    nodes: Packing = Packing.BINPACK
    cards: Packing = Packing.BINPACK

    def for_claims(self, wanted: Sequence[ClaimRequest]) -> Policy:
        """This policy with what the claims themselves say about nodes. All claims of a pod are
        served on one node: if they differ, it is spread."""
        said = {nodes for each in _device_requests(wanted) if (nodes := each.packing.nodes)}
        if not said:
            return self
        return replace(self, nodes=said.pop() if len(said) == 1 else Packing.SPREAD)

    @property
    def for_nodes(self) -> Strategy:
        return STRATEGIES[self.nodes]

    def for_cards(self, device_request: DeviceRequest) -> Strategy:
        """For the cards of a request; what the claim says about it comes first."""
        return STRATEGIES[device_request.packing.cards or self.cards]

    def keeps_apart(self, wanted: Sequence[ClaimRequest]) -> bool:
        """Whether replicas are kept apart on nodes, or on the cards of any request."""
        return self.for_claims(wanted).for_nodes.keeps_apart or any(
            self.for_cards(each).keeps_apart for each in _device_requests(wanted)
        )


@dataclass(frozen=True, slots=True)
class SchedulerPolicy(Policy):
    """kube-scheduler allocates on the node that is chosen: it takes the first devices that fit, and
    neither `cards` nor what claims say about cards has an effect."""

    by_scheduler = True

    def for_cards(self, device_request: DeviceRequest) -> Strategy:
        del device_request
        return AS_PUBLISHED


BINPACK: Final = Policy()


def _device_requests(wanted: Sequence[ClaimRequest]) -> Iterator[DeviceRequest]:
    return (exact.device_request for each in wanted for exact in each.exact_requests())
