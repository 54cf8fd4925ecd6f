"""What is to be looked at, and when. Pure: the caller tells the time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import StrEnum


class Subject(StrEnum):
    POD = "pod"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A pod or a claim by name; what it is now is read when its turn comes."""

    subject: Subject
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.subject} {self.namespace}/{self.name}"


class Agenda:
    """Keys in the order in which they fall due; a key stands at most once, at its earliest time."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def add(self, key: Key, at: float) -> None:
        """Look at `key` at the time `at`, or earlier where that is already planned."""
        planned = self._due.get(key)
        if planned is not None and planned <= at:
            return
        self._due[key] = at
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, key))

    def pop(self, now: float) -> Key | None:
        """The key that has been due for the longest, or None."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key

    def next_due(self) -> float | None:
        """When the next key falls due; None where nothing is planned."""
        while self._heap:
            at, _, key = self._heap[0]
            if self._due.get(key) == at:
                return at
            heapq.heappop(self._heap)  # planned for an earlier time since, and done
        return None

    def __len__(self) -> int:
        return len(self._due)
