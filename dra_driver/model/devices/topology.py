"""How near a node's cards are to each other, and which of them to take together.

Two cards are as near as the lowest PCIe bridge that they have in common: the fewer bridges lie
between it and the cards, the nearer. Cards without a bridge in common are farther apart than any
that have one; nearest of those are cards below one root complex, then those of one NUMA node.

Cards are numbered in the order in which a Topology is given their places. A set of cards is an
int with a bit for each of them, the card 0 being the lowest bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations
from operator import or_
from typing import Final, NamedTuple

from dra_driver.model.names import ATTRIBUTE_BYTES

# A bus number has eight bits: no card has as many bridges above it.
_SAME_ROOT: Final = 256
_SAME_NUMA_NODE: Final = 512
_APART: Final = 768
_MOST_ANSWERS: Final = 4096


class CardPlace(NamedTuple):
    """Where a card is. `bridges` lead from the root complex `root` down to the card; `root` is
    empty and `numa` None where they are not known."""

    bridges: tuple[str, ...]
    root: str
    numa: int | None

    @classmethod
    def of(cls, *, bridges: str, root: str, numa: int | None, switch: str = "") -> CardPlace:
        """From what is published, `bridges` as `format_bridges` has them. The nearest switch is
        one of them; where nothing but its address is published, it is the only one."""
        found = tuple(bridges.split("/")) if bridges else ()
        nearest = _without_domain(switch)
        return cls(found if found or not nearest else (nearest,), root, numa)


def format_bridges(bridges: Iterable[str]) -> str:
    """The bridges above a card from the root complex down, as one text of at most 64 bytes:
    ``0c:02.0/0d:00.0/0e:00.0``. All are in the card's own PCI domain, which is left out. Where
    that would be longer, the last bridge but one, which is the nearest switch, stays with as many
    of the first ones as fit."""
    found = [_without_domain(each) for each in bridges]
    if len("/".join(found)) > ATTRIBUTE_BYTES:
        found.pop()
    while len("/".join(found)) > ATTRIBUTE_BYTES:
        found.pop(-2)
    return "/".join(found)


def _without_domain(address: str) -> str:
    return address.partition(":")[2] if address.count(":") > 1 else address


@dataclass(frozen=True, slots=True)
class _CardGroup:
    """The cards below one bridge, root complex or NUMA node. Those in different `parts` are
    `distance` from each other; a single card has no parts."""

    distance: int
    cards: int
    parts: tuple[_CardGroup, ...] = ()


class Topology:
    """The tree of a node's cards. Nothing of it changes; it remembers what it was asked."""

    def __init__(self, places: Sequence[CardPlace]) -> None:
        self.size = len(places)
        self._groups = sorted(_walk(_tree(places)), key=lambda each: each.distance)
        self.distances = sorted({each.distance for each in self._groups if each.parts})
        self._at = [[0] * len(self.distances) for _ in places]
        """By card, the cards at each distance from it."""
        within = [1 << card for card in range(self.size)]
        for group in self._groups:
            for card in _numbers(group.cards) if group.parts else ():
                self._at[card][self.distances.index(group.distance)] = group.cards & ~within[card]
                within[card] = group.cards
        self.spread = lru_cache(_MOST_ANSWERS)(self._spread)
        self._nearest = lru_cache(_MOST_ANSWERS)(self._searched)

    def distance(self, one: int, other: int) -> int:
        """Between two different cards."""
        cards_at = zip(self.distances, self._at[one], strict=True)
        return next(distance for distance, cards in cards_at if cards >> other & 1)

    def _spread(self, cards: int) -> tuple[int, int]:
        """The largest distance between two cards of the set, and the sum over all pairs."""
        distances = [self.distance(a, b) for a, b in combinations(_numbers(cards), 2)]
        return max(distances, default=0), sum(distances)

    def neighbours(self, card: int, free: int) -> tuple[int, ...]:
        """How many other cards of `free` there are at each distance, the nearest first: the pairs
        that would be broken if the card was taken alone."""
        return tuple([(cards & free).bit_count() for cards in self._at[card]])

    def nearest(
        self, count: int, *available: int, free: int = 0, kept: int = 0
    ) -> tuple[int, ...] | None:
        """The `count` cards to take beside those in `kept`, all from one of the sets `available`;
        None where none of them has as many.

        Those are taken whose largest distance is the smallest, with `kept`; of several such
        choices, the one with the smallest sum of distances; then the one that breaks the fewest
        pairs of cards that others could use, one being taken and one being left, the nearest pairs
        counting first. Others could use what is `available` or `free`. At last, the cards with the
        highest numbers are left.
        """
        return self._nearest(count, available, free, kept)

    def _searched(
        self, count: int, available: tuple[int, ...], free: int, kept: int
    ) -> tuple[int, ...] | None:
        usable = free | reduce(or_, available, 0)
        searches = [_Search(self, count, each & ~kept, usable & ~kept, kept) for each in available]
        costs: list[int] = []
        smallest = _APART
        for group in self._groups:
            if group.distance > smallest:
                break
            for search in searches:
                if search.fits(group):
                    smallest = group.distance
                    costs.append(search.costs(group)[count])
        return tuple(_numbers(min(costs) & (1 << self.size) - 1)) if costs else None


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the best choice from the cards upwards: for each group and each number of cards, the
    best choice of as many.

    A choice's cost is one int: from its highest bits to its lowest the sum of distances, the broken
    pairs by distance, the nearest first, and the cards taken. The least is the best.
    """

    topology: Topology
    count: int
    available: int
    free: int
    kept: int

    def fits(self, group: _CardGroup) -> bool:
        """Whether the group has enough cards, and those that are kept."""
        enough = (self.available & group.cards).bit_count() >= self.count
        return enough and not self.kept & ~group.cards

    def costs(self, group: _CardGroup) -> list[int]:
        """By the number of cards taken, from none to `count` or as many as there are."""
        if not group.parts:
            return [0, self._alone(group.cards)] if group.cards & self.available else [0]
        best = [0]
        before = 0  # the cards of the parts that `best` is about
        for part in group.parts:
            best = self._joined(group.distance, before, best, part)
            before |= part.cards
        return best

    def _alone(self, card: int) -> int:
        """The cost of one card: the pairs that it breaks."""
        pairs = self.topology.neighbours(card.bit_length() - 1, self.free)
        return card + sum(broken << self._broken_at(level) for level, broken in enumerate(pairs))

    def _joined(self, distance: int, cards: int, ours: list[int], part: _CardGroup) -> list[int]:
        """The costs for `cards` and a part together, which are that `distance` apart."""
        kept, their_kept = (cards & self.kept).bit_count(), (part.cards & self.kept).bit_count()
        sum_at = self._broken_at(-1)
        broken_at = self._broken_at(self.topology.distances.index(distance))
        best: list[int] = []
        theirs = self.costs(part)
        for taken, cost in enumerate(ours):
            for more, their_cost in enumerate(theirs[: self.count - taken + 1]):
                pairs = (taken + kept) * (more + their_kept)
                # Pairs of which both are taken are not broken.
                total = cost + their_cost - (2 * taken * more << broken_at)
                total += pairs * distance << sum_at
                if taken + more == len(best):
                    best.append(total)
                else:
                    best[taken + more] = min(best[taken + more], total)
        return best

    def _broken_at(self, level: int) -> int:
        """The lowest bit of the field for the broken pairs of that distance, counted from the
        nearest. The field above all of them, that of -1, has the sum of distances."""
        size, levels = self.topology.size, len(self.topology.distances)
        return size + (levels - 1 - level) * (size * size).bit_length()


def bits(cards: Iterable[int]) -> int:
    """A set of cards."""
    return sum(1 << card for card in set(cards))


def _numbers(cards: int) -> Iterator[int]:
    """The cards of a set."""
    while cards:
        lowest = cards & -cards
        yield lowest.bit_length() - 1
        cards ^= lowest


@lru_cache(1024)
def topology(places: tuple[CardPlace, ...]) -> Topology:
    """The one Topology for cards at these places: most nodes have those of others."""
    return Topology(places)


def _tree(places: Sequence[CardPlace]) -> _CardGroup:
    roots: dict[Hashable, list[int]] = defaultdict(list)
    for card, place in enumerate(places):
        roots[place.root or place.bridges[:1] or card].append(card)
    numa_nodes: dict[Hashable, list[_CardGroup]] = defaultdict(list)
    for root, cards in roots.items():
        known = [numa for card in cards if (numa := places[card].numa) is not None]
        node = min(known) if known else ("unknown", root)
        numa_nodes[node].append(_below(places, cards, 0))
    return _group(_APART, [_group(_SAME_NUMA_NODE, parts) for parts in numa_nodes.values()])


def _below(places: Sequence[CardPlace], cards: Sequence[int], depth: int) -> _CardGroup:
    """Of cards that have the first `depth` bridges in common."""
    if len(cards) == 1:
        return _CardGroup(0, 1 << cards[0])
    parts: dict[Hashable, list[int]] = defaultdict(list)
    for card in cards:
        bridges = places[card].bridges
        parts[bridges[depth] if depth < len(bridges) else card].append(card)
    distance = max(len(places[card].bridges) for card in cards) - depth + 1
    below = [_below(places, each, depth + 1) for each in parts.values()]
    return _group(distance if depth else _SAME_ROOT, below)


def _group(distance: int, parts: Sequence[_CardGroup]) -> _CardGroup:
    if len(parts) == 1:
        return parts[0]
    return _CardGroup(distance, sum(part.cards for part in parts), tuple(parts))


def _walk(group: _CardGroup) -> Iterator[_CardGroup]:
    yield group
    for part in group.parts:
        yield from _walk(part)
