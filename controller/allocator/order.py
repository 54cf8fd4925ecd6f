"""In which order a node's devices are tried, the first that fits being taken, and which of two
nodes is the better one for what each would give.

Devices that can be shared: with `binpack` those in use before free ones, the least left first,
then those with most shares of the same size; with `spread` the other way round.
Whole cards: those that are nearest to each other (`dra_driver.model.topology`) come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.allocator.allocated_devices import DeviceUsage
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.constraints import Attribute
from controller.allocator.device import CardKey, Device
from controller.allocator.device_request import CapacityFit, DeviceRequest
from controller.allocator.node_info import NodeInfo
from controller.allocator.signature import Fill
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


Key = tuple[int, ...]
Score = tuple[int, ...]
"""The least is the best; those of one shape of claims are of one length."""


class Candidate(NamedTuple):
    """A device, what it would give, what is held of it, and the number of its card."""

    device: Device
    offer: CapacityFit
    use: DeviceUsage | None
    fill: Fill
    card: int


@dataclass(frozen=True, slots=True)
class Order:
    """For one node. `peers` says how many replicas of the same workload use a card: a request that
    spreads takes those with the fewest first."""

    policy: Policy
    node: NodeInfo
    peers: Mapping[CardKey, int] = field(default_factory=dict)

    def devices(
        self,
        demand: DeviceRequest,
        candidates: Sequence[Candidate],
        count: int,
        alike: Sequence[str] = (),
    ) -> list[Candidate]:
        """`candidates` in the order in which they are tried, for a claim of `count` cards that
        must have the same values of the attributes `alike`; of cards that are shared, near places
        are kept for claims of several."""
        if len(candidates) < 2:
            return list(candidates)
        keys = self._keys(demand, candidates)
        ordered = sorted(range(len(candidates)), key=keys.__getitem__)
        if count > 1:
            near = self._near(candidates, count, alike)
            ordered.sort(key=lambda n: (keys[n], near[n]))
            return [candidates[n] for n in ordered]
        # The places matter to those only that are equally good.
        ties = [n for n in ordered if keys[n] == keys[ordered[0]]]
        if len(ties) > 1:
            ties.sort(key=lambda n: self.node.neighbours(candidates[n].card))
            ordered[: len(ties)] = ties
        return [candidates[n] for n in ordered]

    def score(self, given: Sequence[tuple[DeviceRequest, Candidate]], alternatives: int) -> Score:
        """Of what the node would give: first the earlier alternatives (the sum of their indices,
        as kube-scheduler scores them), then as the policy says, then how near the cards are."""
        shared = [(demand, each) for demand, each in given if each.device.multiple]
        cards = [each.card for _, each in given if not each.device.multiple]
        fill = tuple(sum(each.fill[part] for _, each in shared) for part in range(3))
        apart = self.node.spread(cards) if len(cards) > 1 else (0, 0)
        free, load = self.node.free, self.node.load
        if self.policy.nodes is Packing.SPREAD:
            return (alternatives, load, -free, *fill, *apart)
        if any(self.policy.cards_for(demand) is Packing.SPREAD for demand, _ in shared):
            return (alternatives, free, -load, *fill, *apart)
        return (alternatives, *fill, free, -load, *apart)

    def _keys(self, demand: DeviceRequest, candidates: Sequence[Candidate]) -> Sequence[Key]:
        """All that counts before the cards' places."""
        if self.policy.cards_for(demand) is Packing.BINPACK:
            return [each.fill for each in candidates]
        return [(self._replicas(each.device), *emptiest(each.fill)) for each in candidates]

    def _replicas(self, device: Device) -> int:
        return self.peers.get(device.card, 0) if device.card is not None else 0

    def _near(self, candidates: Sequence[Candidate], count: int, alike: Sequence[str]) -> list[Key]:
        """The cards that a claim of several takes come first, then those nearest to them. Where a
        card is shared, the one with the fewest free cards near it."""
        whole = [each for each in candidates if not each.device.multiple]
        if not whole:
            return [self.node.neighbours(each.card) for each in candidates]
        # Fewer than `count`: as requests are served that differ in what they select.
        taken = self.node.nearest(count, *_groups(whole, alike)) or self.node.nearest(
            min(count, len({each.card for each in whole})), [each.card for each in whole]
        )
        return [
            self.node.neighbours(each.card)
            if each.device.multiple
            else (self.node.distance(each.card, taken),)
            for each in candidates
        ]


def emptiest(fill: Fill) -> tuple[int, int]:
    """Sorts fills for a request that spreads."""
    return -fill[0], -fill[1]


def _groups(candidates: Sequence[Candidate], alike: Sequence[str]) -> Collection[list[int]]:
    """Cards by their values of the attributes; without those that lack one."""
    if not alike:
        return [[each.card for each in candidates]]
    groups: dict[tuple[Attribute | None, ...], list[int]] = defaultdict(list)
    for each in candidates:
        groups[tuple(each.device.attribute(name) for name in alike)].append(each.card)
    return [group for values, group in groups.items() if None not in values]
