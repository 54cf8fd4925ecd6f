"""The order in which a node's devices are tried, the first that fits being taken, and the score of
a node for what it would give.

Devices that can be shared come in the order of the policy (`controller.allocator.packing`). Whole
cards: those that are nearest to each other (`dra_driver.model.devices.topology`) come first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.allocator.allocated_devices import DeviceUsage
from controller.allocator.claim_request import MOST_RESULTS
from controller.allocator.device import Attribute, CardKey, Device
from controller.allocator.device_request import CapacityFit, DeviceRequest
from controller.allocator.nodes.node_info import NodeInfo
from controller.allocator.nodes.signature import Feasibility, Fill
from controller.allocator.packing.policy import Policy
from controller.allocator.packing.strategy import SortKey
from dra_driver.model.devices.topology import Topology, bits
from dra_driver.selector.selector import Selectors

Score = tuple[int, ...]
"""The smallest is the best; those for claims of one shape have one length."""


class Candidate(NamedTuple):
    """A device, what it would give, what is allocated of it, and the number of its card. Numbers of
    other drivers' devices follow those of the node's cards."""

    device: Device
    capacity_fit: CapacityFit
    use: DeviceUsage | None
    fill: Fill
    card: int


@dataclass(frozen=True, slots=True)
class Order:
    """For one node. `peers` says how many replicas of the same workload use a card: a request that
    keeps apart takes those with the fewest first."""

    policy: Policy
    node: NodeInfo
    peers: Mapping[CardKey, int] = field(default_factory=dict)

    def devices(
        self,
        device_request: DeviceRequest,
        candidates: Sequence[Candidate],
        count: int,
        alike: Sequence[str] = (),
    ) -> list[Candidate]:
        """`candidates` in the order in which they are tried, for claims of `count` cards that must
        have the same values of the attributes `alike`; without those that have a value that too few
        others have. If cards are shared, places near to free cards are left to claims of several
        cards."""
        if len(candidates) < 2:
            return list(candidates)
        keys = self._keys(device_request, candidates)
        ordered = sorted(range(len(candidates)), key=keys.__getitem__)
        if count > 1:
            near = self._near(candidates, count, alike)
            ordered.sort(key=lambda n: (keys[n], near[n]))
        else:
            # Places only matter between devices that are equally good.
            ties = [n for n in ordered if keys[n] == keys[ordered[0]]]
            if len(ties) > 1:
                ties.sort(key=lambda n: self._neighbours(candidates[n]))
                ordered[: len(ties)] = ties
        return _matching([candidates[n] for n in ordered], alike, device_request.count or 1)

    def score(self, given: Sequence[tuple[DeviceRequest, Candidate]], alternatives: int) -> Score:
        """For what the node would give: first the earlier alternatives (the sum of their indices,
        as in kube-scheduler), then as the policy says, then how near the cards are."""
        shared = [(device_request, each) for device_request, each in given if each.device.multiple]
        cards = bits(each.card for _, each in given if not each.device.multiple)
        fill = tuple(sum(each.fill[part] for _, each in shared) for part in range(3))
        apart = self.node.topology.spread(cards)
        nodes = self.policy.for_nodes
        level = nodes.level(self.node.free, self.node.load)
        if nodes.card_first and all(self.policy.for_cards(each).card_first for each, _ in shared):
            return (alternatives, *fill, *level, *apart)
        return (alternatives, *level, *fill, *apart)

    def _keys(
        self, device_request: DeviceRequest, candidates: Sequence[Candidate]
    ) -> Sequence[SortKey]:
        """All that counts before the places of the cards."""
        strategy = self.policy.for_cards(device_request)
        keys = [strategy.card_key(each.fill) for each in candidates]
        if not strategy.keeps_apart:
            return keys
        return [
            (self._replicas(each.device), *key) for each, key in zip(candidates, keys, strict=True)
        ]

    def _replicas(self, device: Device) -> int:
        return self.peers.get(device.card, 0) if device.card is not None else 0

    def _neighbours(self, candidate: Candidate) -> SortKey:
        """The number of free cards beside the card, by their distance."""
        return self.node.topology.neighbours(candidate.card, self.node.free_cards)

    def _near(
        self, candidates: Sequence[Candidate], count: int, alike: Sequence[str]
    ) -> list[SortKey]:
        """The cards that claims of several take come first, then those nearest to them. Of cards
        that are shared, the one with the fewest free cards near it comes first."""
        whole = [each for each in candidates if not each.device.multiple]
        if not whole:
            return [self._neighbours(each) for each in candidates]
        topology, free = self.node.topology, self.node.free_cards
        taken = topology.nearest(count, *_groups(whole, alike), free=free)
        if taken is None:
            # There are fewer than `count`, as the requests select different cards.
            cards = bits(each.card for each in whole)
            taken = topology.nearest(min(count, cards.bit_count()), cards, free=free) or ()
        return [
            self._neighbours(each)
            if each.device.multiple
            else (_distance(topology, each.card, taken),)
            for each in candidates
        ]


def _distance(topology: Topology, card: int, cards: Collection[int]) -> int:
    """The distance to the nearest of the cards; 0 if the card is one of them."""
    return 0 if card in cards else min(topology.distance(card, each) for each in cards)


def _groups(candidates: Sequence[Candidate], alike: Sequence[str]) -> Collection[int]:
    """Sets of cards with equal values of the attributes; without those that lack one."""
    groups: dict[tuple[Attribute | None, ...], int] = defaultdict(int)
    for each in candidates:
        groups[tuple([each.device.attribute(name) for name in alike])] |= 1 << each.card
    return [group for values, group in groups.items() if None not in values]


def _matching(candidates: list[Candidate], alike: Sequence[str], count: int) -> list[Candidate]:
    """Without those whose value of an attribute fewer than `count` candidates have."""
    for name in alike if count > 1 else ():
        values = [each.device.attribute(name) for each in candidates]
        if any(each is not None and len(each.values) > 1 for each in values):
            continue  # different lists may have a value in common
        counted = Counter(values)
        candidates = [
            each
            for each, value in zip(candidates, values, strict=True)
            if value is not None and counted[value] >= count
        ]
    return candidates


def free_devices(
    node: NodeInfo, device_request: DeviceRequest, selectors: Selectors
) -> list[Candidate]:
    """The devices of the node that are free for the request. Raises AllowanceSpent."""
    found: list[Candidate] = []
    for number, card in enumerate(node.cards):
        fit = card.signature.fit_of(device_request, card.devices, selectors)
        for index, capacity_fit, use, fill in fit.free:
            found.append(Candidate(card.devices[index], capacity_fit, use, fill, number))
    return found


def all_devices(
    node: NodeInfo, device_request: DeviceRequest, selectors: Selectors
) -> list[Candidate] | None:
    """All that a request with allocationMode All gets, at least one; None if not all of them are
    free. Devices that are too small do not count; those that have too little left to share do
    (upstream: validateDeviceRequest of structured/internal/experimental, 1.37.2)."""
    for card in node.cards:
        fit = card.signature.fit_of(device_request, card.devices, selectors)
        results = {card.signature.feasibility(device_request, index) for index in fit.selected}
        if results - {Feasibility.FREE, Feasibility.TOO_SMALL}:
            return None
    found = free_devices(node, device_request, selectors)
    return found if 0 < len(found) <= MOST_RESULTS else None
