"""What is to be looked at, and when. Pure: the caller tells the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from controller.cache.keys import Key
from controller.queue.heap import KeyedHeap


class Due(NamedTuple):
    """A key whose turn it is, and since when it has been due."""

    key: Key
    since: float


Rank = tuple[int, str]

_FEW = 1024  # keys that are not worth to be looked through


class Agenda:
    """Keys with the times at which they fall due; a key stands at most once, at its earliest.

    Of those that are due, the one with the least `rank` comes first, then the one that has been
    due for the longest. The rank is asked when a key falls due. `excess` tells of a namespace how
    much it has taken beyond its share at a time: as long as that is not 0 its keys come after all
    others, those of the namespace with the least excess first.
    """

    def __init__(
        self,
        rank: Callable[[Key], Rank] = lambda _: (0, ""),
        excess: Callable[[str, float], float] = lambda _namespace, _now: 0.0,
    ) -> None:
        self._rank = rank
        self._excess = excess
        self._later: KeyedHeap[Key, float] = KeyedHeap()
        self._ready: KeyedHeap[Key, tuple[Rank, float]] = KeyedHeap()
        self._yielding: dict[str, KeyedHeap[Key, tuple[Rank, float]]] = {}  # by namespace
        self._kept = 0

    def add(self, key: Key, at: float) -> None:
        """Look at `key` at the time `at`, or earlier where that is already planned."""
        if key in self._ready or key in self._yielding.get(key.namespace, ()):
            return
        planned = self._later.priority(key)
        if planned is None or at < planned:
            self._later.put(key, at)

    def pop(self, now: float) -> Due | None:
        """The key that is to be looked at first of all that are due, or None."""
        while (first := self._later.least()) is not None and first[0] <= now:
            at, key = first
            self._later.remove(key)
            self._ready.put(key, (self._rank(key), at))
        self._sort_out(now)
        turn = self._ready
        if not turn and self._yielding:
            namespace = min(self._yielding, key=lambda each: self._excess(each, now))
            turn = self._yielding[namespace]
            if len(turn) == 1:
                del self._yielding[namespace]
        least = turn.least()
        if least is None:
            return None
        (_, since), _ = least
        return Due(turn.pop(), since)

    def _sort_out(self, now: float) -> None:
        """Let the first ready key be one of a namespace that yields to nobody, if there is one."""
        for namespace in [each for each in self._yielding if not self._excess(each, now)]:
            for key, priority in self._yielding.pop(namespace).items():
                self._ready.put(key, priority)
        while (first := self._ready.least()) is not None:
            priority, key = first
            if not self._excess(key.namespace, now):
                return
            self._ready.remove(key)
            self._yielding.setdefault(key.namespace, KeyedHeap()).put(key, priority)

    def next_due(self) -> float | None:
        """When the next key falls due; None where nothing is planned."""
        if self._ready or self._yielding:
            return float("-inf")
        first = self._later.least()
        return None if first is None else first[0]

    def take_out(self, exists: Callable[[Key], bool]) -> list[Key]:
        """Keys of what is no more, now planned no longer. For one who takes none up, with whom they
        would become more and more; looks only when they have doubled."""
        if len(self) < 2 * self._kept + _FEW:
            return []
        gone = [key for key in self._later if not exists(key)]
        for key in gone:
            self._later.remove(key)
        for due in (self._ready, *self._yielding.values()):
            found = [key for key in due if not exists(key)]
            for key in found:
                due.remove(key)
            gone += found
        self._yielding = {name: keys for name, keys in self._yielding.items() if keys}
        self._kept = len(self)
        return gone

    def __len__(self) -> int:
        return len(self._later) + len(self._ready) + sum(map(len, self._yielding.values()))
