"""In which order a node's devices are tried: the first that fits is taken.

Devices that can be shared: with `binpack` those in use before free ones, the least left first,
then those with most shares of the same size; with `spread` the other way round.
Whole cards: of the nearest group (PCIe switch, root complex, NUMA node) that has enough of them;
of several groups the one with the fewest free cards. Where no group has enough, those with the
most free cards come first, so that few are broken.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from controller.allocator.attempt import Candidate
from controller.allocator.device import CardKey, Device, Place
from controller.allocator.policy import Packing, Policy
from controller.allocator.state import State
from controller.allocator.summary import WHOLE, NodeSummary, levels

Key = tuple[int | str, ...]
_NO_LEVEL = 3  # farther than any that `levels` gives


@dataclass(frozen=True, slots=True)
class Order:
    """For one node. `peers` are cards that replicas of the same workload use: they come last."""

    state: State
    policy: Policy
    summary: NodeSummary
    peers: Collection[CardKey] = ()

    def devices(self, candidates: Sequence[Candidate], count: int) -> list[Candidate]:
        """`candidates` for a claim of `count` cards in the order in which they are tried."""
        if len(candidates) < 2:
            return list(candidates)
        if candidates[0].device.multiple:
            return sorted(candidates, key=self._shared)
        return sorted(candidates, key=lambda each: (self._peer(each), *self.near(each, count)))

    def _peer(self, candidate: Candidate) -> bool:
        return bool(self.peers) and candidate.device.card in self.peers

    def _shared(self, candidate: Candidate) -> tuple[bool, Key, Key]:
        free, left, others = self.fill(candidate)
        if self.policy.cards is Packing.SPREAD:
            return self._peer(candidate), (-free, -left), self.near(candidate, 1)
        return self._peer(candidate), (free, left, others), self.near(candidate, 1)

    def fill(self, candidate: Candidate) -> tuple[int, int, int]:
        """Is the device free (1) or in use (0); how much of it is left after the grant, in
        thousandths; and minus the number of shares of the same size that it holds."""
        device, offer = candidate.device, candidate.offer
        use = self.state.holdings.use(device.id)
        consumed = use.consumed if use is not None else {}
        left = 0
        for name, amount, total in offer.amounts:
            if total:
                left += (total - consumed.get(name, 0) - amount) * WHOLE // total
        if use is None:
            return 1, left, 0
        same = use.shares[frozenset((name, amount) for name, amount, _ in offer.amounts)]
        return 0, left, -same

    def near(self, candidate: Candidate, count: int) -> Key:
        """Sorts cards by the groups in which they stand."""
        return near(self.summary, candidate.device, count)


def near(summary: NodeSummary, device: Device, count: int) -> Key:
    """First by the nearest group that has `count` free cards, then by how few it has. Cards of
    one group stay together."""
    groups = levels(device.place)
    for nth, (level, group) in enumerate(groups):
        cards = summary.free_at[group]
        if cards >= count:
            return level, cards, *group, *_largest_first(summary, groups[:nth])
    return _NO_LEVEL, *_largest_first(summary, groups)


def _largest_first(summary: NodeSummary, groups: tuple[tuple[int, Place], ...]) -> Key:
    key: list[int | str] = []
    for _, group in reversed(groups):
        key += [-summary.free_at[group], *group]
    return tuple(key)
