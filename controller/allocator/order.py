"""In which order a node's devices are tried: the first that fits is taken.

Devices that can be shared: with `binpack` those in use before free ones, the least left first,
then those with most shares of the same size; with `spread` the other way round.
Whole cards: of the nearest group (PCIe switch, root complex, NUMA node) that has enough of them;
of several groups the one with the fewest free cards. Where no group has enough, those with the
most free cards come first, so that few are broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controller.allocator.candidates import Candidate, fitting
from controller.allocator.demand import WHOLE, Demand, Offer
from controller.allocator.device import CardKey, Device, DeviceKind, Place
from controller.allocator.holdings import Use
from controller.allocator.openings import NodeOpenings
from controller.allocator.policy import Policy
from controller.allocator.summary import NodeSummary, levels
from dra_driver.model.packing import Packing

Key = tuple[int | str, ...]
Fill = tuple[int, int, int]
"""Is the device free (1) or in use (0); how much of it is left after the grant, in thousandths;
and minus the number of shares of the same size that it holds."""
_NO_LEVEL = 3  # farther than any that `levels` gives


@dataclass(frozen=True, slots=True)
class Order:
    """For one node. `peers` says how many replicas of the same workload use a card: a request that
    spreads takes those with the fewest first."""

    policy: Policy
    summary: NodeSummary
    peers: Mapping[CardKey, int] = field(default_factory=dict)

    def devices(
        self, demand: Demand, candidates: Sequence[Candidate], count: int
    ) -> list[Candidate]:
        """`candidates` in the order in which they are tried, for a claim of `count` cards; of cards
        that are shared, near places are kept for claims of several."""
        if len(candidates) < 2:
            return list(candidates)
        keys = self._keys(demand, candidates)
        ranked = [
            (key, self.near(each, 1 if each.device.multiple else count), n)
            for n, (each, key) in enumerate(zip(candidates, keys, strict=True))
        ]
        return [candidates[n] for _, _, n in sorted(ranked)]

    def best(self, demand: Demand, candidates: Sequence[Candidate]) -> Candidate:
        """The first of `devices` for a claim of one card. `candidates` must not be empty."""
        keys = self._keys(demand, candidates)
        least = min(keys)
        ties = [each for each, key in zip(candidates, keys, strict=True) if key == least]
        return ties[0] if len(ties) == 1 else min(ties, key=lambda each: self.near(each, 1))

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

    def near(self, candidate: Candidate, count: int) -> Key:
        """Sorts cards by the groups in which they stand."""
        return near(self.summary, candidate.device, count)


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


def near(summary: NodeSummary, device: Device, count: int) -> Key:
    """First by the nearest group that has `count` free cards, then by how few it has. Cards of
    one group stay together."""
    groups = levels(device.place)
    for nth, (level, group) in enumerate(groups):
        cards = summary.free_at.get(group, 0)
        if cards >= count:
            return level, cards, *group, *_largest_first(summary, groups[:nth])
    return _NO_LEVEL, *_largest_first(summary, groups)


def _largest_first(summary: NodeSummary, groups: tuple[tuple[int, Place], ...]) -> Key:
    key: list[int | str] = []
    for _, group in reversed(groups):
        key += [-summary.free_at.get(group, 0), *group]
    return tuple(key)
