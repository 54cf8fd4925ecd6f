"""Sets of nodes as Python integers with a bit for each node: to intersect two sets of 15,000 nodes
takes a microsecond."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

NodeSet = int
_PEELED: Final = 8
_SLACK: Final = 4096  # numbers of nodes that are gone, before all are numbered anew


class NodeNumbers:
    """The number of each node, which is the place of its bit. `epoch` changes when all nodes are
    numbered anew, because most numbers are of nodes that are gone: a set that was made before has
    no meaning then."""

    def __init__(self) -> None:
        self.epoch = 0
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def bit(self, name: str) -> NodeSet:
        """The set of that one node."""
        return 1 << self.number(name)

    def number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self._names)
            self._names.append(name)
        return found

    def name(self, number: int) -> str:
        return self._names[number]

    def set_of(self, names: Collection[str]) -> NodeSet:
        for name in sorted(name for name in names if name not in self._numbers):
            self.number(name)  # ties between nodes are by number, which must not be by chance
        return set_of_numbers(self._numbers[name] for name in names)

    def all(self) -> NodeSet:
        """Every node that has a number."""
        return (1 << len(self._names)) - 1

    def names(self, nodes: NodeSet) -> Iterator[str]:
        return (self._names[number] for number in numbers(nodes))

    def trim(self, known: AbstractSet[str]) -> None:
        """Number all nodes anew, the `known` ones, where most numbers are of others."""
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
    """The numbers in the set, ascending. To take out one bit costs as much as the whole set is
    long; who wants more than a few gets them from the set cut into words."""
    for _ in range(_PEELED):
        if not nodes:
            return
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
    data = nodes.to_bytes((nodes.bit_length() + 63) // 64 * 8, "little")
    for base in range(0, len(data), 8):
        word = int.from_bytes(data[base : base + 8], "little")
        while word:
            lowest = word & -word
            yield base * 8 + lowest.bit_length() - 1
            word ^= lowest
