"""A priority queue in which each key stands once, and can be moved or taken out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
P = TypeVar("P")


class KeyedHeap(Generic[K, P]):
    """A binary heap with the place of each key; of equal priorities the key that was put first
    comes first. The module heapq has no way to change an entry: old ones would be left behind."""

    def __init__(self) -> None:
        self._entries: list[tuple[P, int, K]] = []
        self._places: dict[K, int] = {}
        self._count = 0

    def put(self, key: K, priority: P) -> None:
        """The key, with this priority from now on."""
        self._count += 1
        entry = priority, self._count, key
        place = self._places.get(key)
        if place is None:
            place = len(self._entries)
            self._entries.append(entry)
        self._sift(place, entry)

    def least(self) -> tuple[P, K] | None:
        """What `pop` would give, with its priority."""
        if not self._entries:
            return None
        priority, _, key = self._entries[0]
        return priority, key

    def pop(self) -> K:
        """Take out the key with the least priority. Raises IndexError where there is none."""
        key = self._entries[0][2]
        self.remove(key)
        return key

    def remove(self, key: K) -> None:
        place = self._places.pop(key)
        last = self._entries.pop()
        if place < len(self._entries):
            self._sift(place, last)

    def priority(self, key: K) -> P | None:
        """None where the key is not here."""
        place = self._places.get(key)
        return None if place is None else self._entries[place][0]

    def items(self) -> Iterator[tuple[K, P]]:
        """In no order."""
        return ((key, priority) for priority, _, key in self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[K]:
        """In no order."""
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._entries)

    def _sift(self, place: int, entry: tuple[P, int, K]) -> None:
        """Put the entry at the place, or where it belongs above or below that."""
        entries, places = self._entries, self._places
        size, free = len(entries), place
        while free and entry < entries[parent := (free - 1) // 2]:
            entries[free] = moved = entries[parent]
            places[moved[2]] = free
            free = parent
        if free == place:
            while (child := 2 * free + 1) < size:
                if child + 1 < size and entries[child + 1] < entries[child]:
                    child += 1
                if entry <= entries[child]:
                    break
                entries[free] = moved = entries[child]
                places[moved[2]] = free
                free = child
        entries[free] = entry
        places[entry[2]] = free
