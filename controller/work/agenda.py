"""What is to be looked at, and when. Pure: the caller tells the time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dra_driver.model.claim import Object


class Subject(StrEnum):
    POD = "pod"
    CLAIM = "claim"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A pod, a claim or a claim template by name; what it is now is read when its turn comes."""

    subject: Subject
    namespace: str
    name: str

    @classmethod
    def of_claim(cls, claim: Object) -> Key:
        return cls(Subject.CLAIM, claim["metadata"]["namespace"], claim["metadata"]["name"])

    @classmethod
    def of_template(cls, template: Object) -> Key:
        metadata = template["metadata"]
        return cls(Subject.TEMPLATE, metadata["namespace"], metadata["name"])

    def __str__(self) -> str:
        return f"{self.subject} {self.namespace}/{self.name}"


Rank = tuple[int, str]

_FEW = 1024  # keys that are not worth to be looked through


class Agenda:
    """Keys with the times at which they fall due; a key stands at most once, at its earliest.

    Of those that are due, the one with the least `rank` comes first, then the one that has been
    due for the longest. The rank is asked when a key falls due.
    """

    def __init__(self, rank: Callable[[Key], Rank] = lambda _: (0, "")) -> None:
        self._rank = rank
        self._due: dict[Key, float] = {}
        self._later: list[tuple[float, int, Key]] = []
        self._ready: list[tuple[Rank, float, int, Key]] = []
        self._count = 0
        self._kept = 0

    def add(self, key: Key, at: float) -> None:
        """Look at `key` at the time `at`, or earlier where that is already planned."""
        planned = self._due.get(key)
        if planned is not None and planned <= at:
            return
        self._due[key] = at
        self._count += 1
        heapq.heappush(self._later, (at, self._count, key))

    def pop(self, now: float) -> Key | None:
        """The key that is to be looked at first of all that are due, or None."""
        while self._later and self._later[0][0] <= now:
            at, count, key = heapq.heappop(self._later)
            if self._due.get(key) == at:  # else planned for an earlier time since
                self._due[key] = float("-inf")  # so that nothing brings it in a second time
                heapq.heappush(self._ready, (self._rank(key), at, count, key))
        if not self._ready:
            return None
        *_, key = heapq.heappop(self._ready)
        del self._due[key]
        return key

    def next_due(self) -> float | None:
        """When the next key falls due; None where nothing is planned."""
        if self._ready:
            return float("-inf")
        while self._later:
            at, _, key = self._later[0]
            if self._due.get(key) == at:
                return at
            heapq.heappop(self._later)
        return None

    def take_out(self, exists: Callable[[Key], bool]) -> list[Key]:
        """Keys of what is no more, now planned no longer. For one who takes none up, with whom they
        would become more and more; looks only when they have doubled."""
        if len(self._due) < 2 * self._kept + _FEW:
            return []
        gone = [key for key in self._due if not exists(key)]
        for key in gone:
            del self._due[key]
        self._later = [each for each in self._later if self._due.get(each[2]) == each[0]]
        self._ready = [each for each in self._ready if each[3] in self._due]
        heapq.heapify(self._later)
        heapq.heapify(self._ready)
        self._kept = len(self._due)
        return gone

    def __len__(self) -> int:
        return len(self._due)
