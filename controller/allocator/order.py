"""In which order a node's devices are tried: the first that fits is taken.

Devices that can be shared: with `binpack` those in use before free ones, the least left first,
then those with most shares of the same size; with `spread` the other way round.
Whole cards: those that are nearest to each other (`dra_driver.model.topology`) come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from controller.allocator.attribute import Attribute
from controller.allocator.candidates import Candidate, fitting
from controller.allocator.demand import WHOLE, Demand, Offer
from controller.allocator.device import CardKey, Device, DeviceKind
from controller.allocator.holdings import Use
from controller.allocator.openings import NodeOpenings
from controller.allocator.policy import Policy
from controller.allocator.summary import NodeSummary
from dra_driver.model.packing import Packing

Key = tuple[int, ...]
Fill = tuple[int, int, int]
"""Is the device free (1) or in use (0); how much of it is left after the grant, in thousandths;
and minus the number of shares of the same size that it holds."""


@dataclass(frozen=True, slots=True)
class Order:
    """For one node. `peers` says how many replicas of the same workload use a card: a request that
    spreads takes those with the fewest first."""

    policy: Policy
    summary: NodeSummary
    peers: Mapping[CardKey, int] = field(default_factory=dict)

    def devices(
        self,
        demand: Demand,
        candidates: Sequence[Candidate],
        count: int,
        alike: Sequence[str] = (),
    ) -> list[Candidate]:
        """`candidates` in the order in which they are tried, for a claim of `count` cards that
        must have the same values of the attributes `alike`; of cards that are shared, near places
        are kept for claims of several."""
        if len(candidates) < 2:
            return list(candidates)
        near = self._near(candidates, count, alike)
        keys = zip(self._keys(demand, candidates), near, strict=True)
        return [candidates[n] for _, n in sorted((key, n) for n, key in enumerate(keys))]

    def best(self, demand: Demand, candidates: Sequence[Candidate]) -> Candidate:
        """The first of `devices` for a claim of one card. `candidates` must not be empty."""
        keys = self._keys(demand, candidates)
        least = min(keys)
        ties = [each for each, key in zip(candidates, keys, strict=True) if key == least]
        return ties[0] if len(ties) == 1 else min(ties, key=self._alone)

    def heeds_peers(self, demand: Demand) -> bool:
        """Whether it matters to the demand which cards the replicas use."""
        return bool(self.peers) and self.policy.cards_for(demand) is Packing.SPREAD

    def _keys(self, demand: Demand, candidates: Sequence[Candidate]) -> Sequence[tuple[int, ...]]:
        """All that counts before the cards' places."""
        fills = [fill_of(device.kind, offer, use) for device, offer, use in candidates]
        if self.policy.cards_for(demand) is Packing.BINPACK:
            return fills
        return [
            (self._replicas(each.device), *_emptiest(fill))
            for each, fill in zip(candidates, fills, strict=True)
        ]

    def _replicas(self, device: Device) -> int:
        return self.peers.get(device.card, 0) if device.card is not None else 0

    def _near(self, candidates: Sequence[Candidate], count: int, alike: Sequence[str]) -> list[Key]:
        """The cards that a claim of several takes come first, then those nearest to them. Where a
        claim takes one, and where a card is shared, the one with the fewest free cards near it."""
        whole = [each.device for each in candidates if not each.device.multiple]
        if count == 1 or not whole:
            return [self._alone(each) for each in candidates]
        # Fewer than `count`: as requests are served that differ in what they select.
        taken = self.summary.nearest(count, *_groups(whole, alike)) or self.summary.nearest(
            min(count, len({self.summary.card(each) for each in whole})), whole
        )
        return [
            self._alone(each)
            if each.device.multiple
            else (self.summary.distance(each.device, taken),)
            for each in candidates
        ]

    def _alone(self, candidate: Candidate) -> Key:
        return self.summary.neighbours(candidate.device)


def best_fill(demand: Demand, openings: NodeOpenings, cards: Packing) -> Fill | None:
    """The fill of `Order.best`, where there are no peers; None where nothing has room for the
    demand."""
    fills: list[Fill] = []
    for kind in openings.free:
        offer = demand.offer(kind)
        if offer is not None and not offer.taints:
            fills.append(fill_of(kind, offer, None))
    fills += [
        fill_of(device.kind, offer, use) for device, offer, use in fitting(demand, openings.shared)
    ]
    if not fills:
        return None
    return min(fills) if cards is Packing.BINPACK else min(fills, key=_emptiest)


def fill_of(kind: DeviceKind, offer: Offer, use: Use | None) -> Fill:
    """Of a device that is not shared it means nothing."""
    if not kind.multiple:
        return 0, 0, 0
    if use is None:
        return 1, offer.left, 0
    left = offer.left
    for name, _, total in offer.amounts:
        if total:
            left -= use.consumed.get(name, 0) * WHOLE // total
    return 0, left, -use.shares.get(offer.share, 0)


def _emptiest(fill: tuple[int, ...]) -> tuple[int, int]:
    return -fill[0], -fill[1]


def _groups(devices: Sequence[Device], alike: Sequence[str]) -> Collection[list[Device]]:
    """Devices by their values of the attributes; without those that lack one."""
    if not alike:
        return [list(devices)]
    groups: dict[tuple[Attribute | None, ...], list[Device]] = defaultdict(list)
    for device in devices:
        groups[tuple(device.attribute(each) for each in alike)].append(device)
    return [group for values, group in groups.items() if None not in values]
