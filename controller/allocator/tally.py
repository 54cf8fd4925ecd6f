"""How the devices of each node stand to a demand, counted in words that people read."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeVar

from controller.allocator.changes import ALL_NODES, Changed
from controller.allocator.demand import Demand, Shortfall
from controller.allocator.inventory import Inventory

T = TypeVar("T")

_MOST_DISTINCT = 4096
_MOST_TABLES = 16  # different demands; a table has an entry for each node


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Of one node: devices that are selected by how they stand, the free ones among them, how
    many there are of each type, why a selector could not be evaluated, and what those that are too
    small have too little of."""

    words: Counter[str]
    free: int
    types: Counter[str]
    error: str
    shortfalls: Counter[Shortfall] = field(default_factory=Counter)


@dataclass(slots=True)
class Total:
    """Of several nodes. `free` counts nodes by how many free devices they have."""

    words: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    free: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    shortfalls: Counter[Shortfall] = field(default_factory=Counter)

    def add(self, tally: Tally, by: int = 1) -> None:
        _add(self.words, tally.words, by)
        _add(self.types, tally.types, by)
        _add(self.shortfalls, tally.shortfalls, by)
        self.free[tally.free] += by
        if tally.error:
            self.errors[tally.error] += by


@dataclass(slots=True)
class _Table:
    """Equal tallies are one object: many nodes have few different ones, and a sum over some of the
    nodes is one over those."""

    unseen: set[str]
    tallies: dict[str, Tally] = field(default_factory=dict)
    total: Total = field(default_factory=Total)
    _distinct: dict[Hashable, Tally] = field(default_factory=dict)

    def the_one(self, tally: Tally) -> Tally:
        content = (
            frozenset(tally.words.items()),
            tally.free,
            frozenset(tally.types.items()),
            tally.error,
            frozenset(tally.shortfalls.items()),
        )
        if len(self._distinct) >= _MOST_DISTINCT:
            self._distinct.clear()
        return self._distinct.setdefault(content, tally)


class Tallies:
    """A claim that waits is looked at with each change, so what did not change is kept."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._tables: OrderedDict[Demand, _Table] = OrderedDict()

    def forget(self, changed: Changed) -> None:
        if ALL_NODES in changed.nodes:
            self._tables.clear()
        for table in self._tables.values():
            table.unseen |= changed.nodes

    def total(self, demand: Demand, nodes: Collection[str], count: Callable[[str], Tally]) -> Total:
        """Over `nodes`; `count` gives the tally of one that is not known. Where it raises, what
        was counted before stays known."""
        if self._inventory.roams:
            return _sum(count(node) for node in nodes)
        table = self._complete(demand, count)
        if isinstance(nodes, AbstractSet) and nodes >= table.tallies.keys():
            return table.total
        return _sum(filter(None, map(table.tallies.get, nodes)))

    def _complete(self, demand: Demand, count: Callable[[str], Tally]) -> _Table:
        found = self._tables.pop(demand, None) or _Table(set(self._inventory.nodes))
        self._tables[demand] = found
        if len(self._tables) > _MOST_TABLES:
            self._tables.popitem(last=False)
        for node in list(found.unseen):
            new = found.the_one(count(node)) if node in self._inventory.nodes else None
            old = found.tallies.pop(node, None)
            if old is not None:
                found.total.add(old, -1)
            if new is not None:
                found.tallies[node] = new
                found.total.add(new)
            found.unseen.discard(node)
        return found


def _add(total: Counter[T], counted: Counter[T], by: int) -> None:
    for each, count in counted.items():
        total[each] += by * count


def _sum(tallies: Iterable[Tally]) -> Total:
    total = Total()
    for tally, nodes in Counter(tallies).items():
        total.add(tally, nodes)
    return total
