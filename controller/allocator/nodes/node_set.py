"""Sets of nodes as Python integers with a bit for each node: the intersection of two sets of 15,000
nodes takes a microsecond."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

NodeSet = int
Level = tuple[int, int]
"""The nodes with the smallest level come first. Both numbers may be negative."""
_PEELED: Final = 8
_SLACK: Final = 4096  # numbers of deleted nodes that are tolerated before all nodes are renumbered


class NodeNumbers:
    """The number of each node, which is the place of its bit. `epoch` grows when all nodes are
    renumbered, because most numbers are of deleted nodes: older sets have no meaning then."""

    def __init__(self) -> None:
        self.epoch = 0
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def bit(self, name: str) -> NodeSet:
        """The set of that one node."""
        return 1 << self.number(name)

    def number(self, name: str) -> int:
        """The number of the node; a new one gets the next."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    @property
    def version(self) -> tuple[int, int]:
        """Changes when a node gets a number, or another one."""
        return self.epoch, len(self._names)

    def __contains__(self, name: object) -> bool:
        """Whether the node has a number. Pods may name nodes that never existed: those get none."""
        return name in self._numbers

    def name(self, number: int) -> str:
        return self._names[number]

    def set_of(self, names: Collection[str]) -> NodeSet:
        """The set of these nodes."""
        # Equally good nodes are tried by number, so that numbers must not depend on chance.
        for name in sorted(name for name in names if name not in self._numbers):
            self.number(name)
        return set_of_numbers(self._numbers[name] for name in names)

    def names(self, nodes: NodeSet) -> Iterator[str]:
        return (self._names[number] for number in numbers(nodes))

    def trim(self, known: AbstractSet[str]) -> None:
        """Renumber the `known` nodes if most numbers are of other nodes."""
        if len(self._names) > 2 * len(known) + _SLACK:
            self.epoch += 1
            self._names = sorted(known)
            self._numbers = {name: number for number, name in enumerate(self._names)}


def set_of_numbers(found: Iterable[int]) -> NodeSet:
    chosen = list(found)
    if len(chosen) < 8:
        return sum(1 << number for number in set(chosen))
    bits = bytearray(max(chosen) // 8 + 1)
    for number in chosen:
        bits[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(bits, "little")


def numbers(nodes: NodeSet) -> Iterator[int]:
    """The numbers in the set, ascending. Each operation on the integer takes time in proportion to
    its length, so only the first few numbers are found by them."""
    for _ in range(_PEELED):
        if not nodes:
            return
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
    digits = bin(nodes)[:1:-1]  # the lowest first
    number = digits.find("1")
    while number >= 0:
        yield number
        number = digits.find("1", number + 1)


class NodeCounter:
    """A count for each node, in binary: `_planes[n]` has the nodes whose count has the bit n. So
    one more set costs a few operations on integers, however many nodes are in it."""

    def __init__(self, sets: Iterable[NodeSet] = ()) -> None:
        self._planes: list[NodeSet] = []
        for nodes in sets:
            self.add(nodes)

    def add(self, nodes: NodeSet) -> None:
        """Add 1 to the count of each of the nodes."""
        for n, plane in enumerate(self._planes):
            self._planes[n] = plane ^ nodes
            nodes &= plane
            if not nodes:
                return
        if nodes:
            self._planes.append(nodes)

    def at_least(self, count: int) -> NodeSet:
        """The nodes that have such a count; `count` is 1 or more."""
        more, equal = 0, -1
        for n in reversed(range(max(len(self._planes), count.bit_length()))):
            plane = self._planes[n] if n < len(self._planes) else 0
            if count >> n & 1:
                equal &= plane
            else:
                more |= equal & plane
                equal &= ~plane
        return more | equal

    def most(self) -> int:
        """The largest count of a node."""
        nodes, most = -1, 0
        for n in reversed(range(len(self._planes))):
            if nodes & self._planes[n]:
                nodes &= self._planes[n]
                most |= 1 << n
        return most

    def split(self, nodes: NodeSet) -> list[NodeSet]:
        """The set in parts of nodes with equal counts."""
        parts = [nodes]
        for plane in self._planes:
            parts = [half for part in parts for half in (part & plane, part & ~plane) if half]
        return parts


class Levels:
    """Sets of nodes by level, and the levels in order. A block has the nodes of all levels whose
    first number is the same after division by `width`, so that a walk passes by many levels."""

    def __init__(self, width: int) -> None:
        self.nodes: dict[Level, NodeSet] = {}
        self._blocks: dict[int, NodeSet] = {}
        self._order: list[Level] = []
        self._width = width

    def add(self, level: Level, bit: NodeSet) -> None:
        if level not in self.nodes:
            insort(self._order, level)
        self.nodes[level] = self.nodes.get(level, 0) | bit
        block = level[0] // self._width
        self._blocks[block] = self._blocks.get(block, 0) | bit

    def remove(self, level: Level, bit: NodeSet) -> None:
        self._blocks[level[0] // self._width] &= ~bit
        self.nodes[level] &= ~bit
        if not self.nodes[level]:
            del self.nodes[level]
            del self._order[bisect_left(self._order, level)]

    def walk(self, nodes: NodeSet) -> Iterator[NodeSet]:
        """The set split by level, the lowest first."""
        block: int | None = None
        part = 0
        for level in tuple(self._order):
            if level[0] // self._width != block:
                if not nodes:
                    return
                block = level[0] // self._width
                part = nodes & self._blocks[block]
                nodes ^= part
            if part and (found := part & self.nodes[level]):
                part ^= found
                yield found
