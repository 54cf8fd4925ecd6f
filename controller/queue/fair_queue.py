"""The order among pods: priority, then namespaces in turn, then age. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.cache.keys import Key

Rank = tuple[int, str]  # a priority, the least first, and a timestamp
_FEW: Final = 1024  # entries that are not worth a compaction


class Place(NamedTuple):
    """Where a key stands; the least comes first. `turn` is its namespace's, `age` a timestamp."""

    priority: int
    turn: int
    age: str
    number: int  # of equal ones the key that was pushed first comes first


class Turns:
    """Namespaces in turn (start-time fair queueing): who had a step comes after all who had none
    since. A namespace that was idle gains one step by that, not as many as others had."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._latest = 0

    def of(self, namespace: str) -> int:
        return self._turns.get(namespace, 0)

    def take(self, namespace: str) -> None:
        """A step for the namespace begins."""
        self._latest = max(self.of(namespace), self._latest)
        self._turns[namespace] = self._latest + 1
        if len(self._turns) > 2 * _FEW:
            recent = sorted(self._turns.values())[-_FEW]
            self._turns = {name: at for name, at in self._turns.items() if at >= recent}


class FairQueue:
    """Each key stands once. A lane holds the keys of one priority and namespace by age; a heap
    orders the first ones of all lanes. What is outdated is dropped when it comes to the top."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._keys: dict[Key, tuple[int, str, int]] = {}  # priority, age, number
        self._count = 0
        self._clear()

    def _clear(self) -> None:
        self._lanes: dict[tuple[int, str], list[tuple[str, int, Key]]] = {}
        self._heads: list[tuple[Place, str]] = []  # with the namespace
        self._head_of: dict[tuple[int, str], Place] = {}  # the valid one of the lane
        self._pushed = 0

    def push(self, key: Key, priority: int, age: str) -> None:
        """No effect where the key stands here already."""
        if key in self._keys:
            return
        self._count += 1
        self._keys[key] = priority, age, self._count
        self._put(key, priority, age, self._count)
        if self._pushed > 2 * len(self._keys) + _FEW:
            self._clear()
            for each, place in self._keys.items():
                self._put(each, *place)

    def head(self) -> tuple[Place, Key] | None:
        """The key that comes first."""
        while self._heads:
            place, namespace = self._heads[0]
            at = place.priority, namespace
            if self._head_of.get(at) is not place:
                heapq.heappop(self._heads)
                continue
            lane = self._lanes[at]
            while lane and self._keys.get(lane[0][2], (0, "", 0))[2] != lane[0][1]:
                heapq.heappop(lane)
            if not lane:
                heapq.heappop(self._heads)
                del self._lanes[at], self._head_of[at]
            elif lane[0][1] == place.number and place.turn == self._turns.of(namespace):
                return place, lane[0][2]
            else:
                heapq.heappop(self._heads)
                self._put_head(at)
        return None

    def remove(self, key: Key) -> None:
        """No effect where the key is not here."""
        self._keys.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        """In the order in which they were pushed."""
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def _put(self, key: Key, priority: int, age: str, number: int) -> None:
        self._pushed += 1
        at = priority, key.namespace
        lane = self._lanes.setdefault(at, [])
        heapq.heappush(lane, (age, number, key))
        if lane[0][1] == number:
            self._put_head(at)

    def _put_head(self, at: tuple[int, str]) -> None:
        priority, namespace = at
        age, number, _ = self._lanes[at][0]
        place = Place(priority, self._turns.of(namespace), age, number)
        self._head_of[at] = place
        heapq.heappush(self._heads, (place, namespace))
