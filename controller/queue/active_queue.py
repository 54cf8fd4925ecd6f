"""What is to be reconciled now, in order; namespaces whose steps take too long come last. Pure.

One thread decides for all. A tenant writes selectors and requests as costly as the API allows, in
as many pods as its quota allows, and also chooses their priority where no quota limits it. So a
namespace whose steps took too long lately comes after all others, whatever its pods' priority.
Whoever takes ordinary time is never charged anything, however many pods it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.cache.keys import Key
from controller.queue.fair_queue import FairQueue, Turns

_FREE: Final = 0.02  # seconds of a step that are charged to nobody; ordinary ones take less
_SHARE: Final = 0.2  # seconds beyond that which a namespace may have taken lately
_HALF_LIFE: Final = 10.0  # seconds until half of what was taken is forgiven


class NamespaceBudget:
    """The time that the steps of each namespace took lately."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[float, float]] = {}  # seconds, and when they were counted

    def charge(self, namespace: str, seconds: float, now: float) -> None:
        """A step for the namespace took so long."""
        if seconds > _FREE:
            self._taken[namespace] = self._lately(namespace, now) + seconds - _FREE, now

    def excess(self, namespace: str, now: float) -> float:
        """How much too long the namespace's steps took lately; 0 where it yields to nobody."""
        if namespace not in self._taken:
            return 0.0
        lately = self._lately(namespace, now)
        if lately <= _SHARE / 10:
            del self._taken[namespace]
        return lately if lately > _SHARE else 0.0

    def _lately(self, namespace: str, now: float) -> float:
        seconds, at = self._taken.get(namespace, (0.0, now))
        forgiven: float = 0.5 ** ((now - at) / _HALF_LIFE)
        return seconds * forgiven


class Due(NamedTuple):
    """A key that is to be reconciled, and since when it has been due."""

    key: Key
    since: float


class ActiveQueue:
    """Keys of namespaces that yield stand apart, until they are forgiven or nobody else is left:
    then those of the namespace with the least excess come first."""

    def __init__(self, turns: Turns, budget: NamespaceBudget) -> None:
        self._turns = turns
        self._budget = budget
        self._entries: dict[Key, tuple[int, str, float]] = {}  # priority, age, due since
        self._ready = FairQueue(turns)
        self._yielding: dict[str, FairQueue] = {}

    def push(self, key: Key, priority: int, age: str, since: float) -> None:
        """No effect where the key stands here already."""
        if key not in self._entries:
            self._entries[key] = priority, age, since
            self._ready.push(key, priority, age)

    def pop(self, now: float) -> Due | None:
        """The key that comes first, or None."""
        self._sort_out(now)
        queue = self._ready
        if not queue and self._yielding:
            namespace = min(self._yielding, key=lambda each: self._budget.excess(each, now))
            queue = self._yielding[namespace]
            if len(queue) == 1:
                del self._yielding[namespace]
        head = queue.head()
        if head is None:
            return None
        _, key = head
        queue.remove(key)
        self._turns.take(key.namespace)
        _, _, since = self._entries.pop(key)
        return Due(key, since)

    def remove(self, key: Key) -> None:
        """The key must stand here."""
        del self._entries[key]
        self._ready.remove(key)
        yielding = self._yielding.get(key.namespace)
        if yielding is not None:
            yielding.remove(key)
            if not yielding:
                del self._yielding[key.namespace]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _sort_out(self, now: float) -> None:
        """Let the first ready key be one of a namespace that yields to nobody, if there is one."""
        for namespace in [n for n in self._yielding if not self._budget.excess(n, now)]:
            for key in self._yielding.pop(namespace):
                self._move(key, self._ready)
        while (head := self._ready.head()) is not None:
            _, key = head
            if not self._budget.excess(key.namespace, now):
                return
            self._ready.remove(key)
            self._move(key, self._yielding.setdefault(key.namespace, FairQueue(self._turns)))

    def _move(self, key: Key, queue: FairQueue) -> None:
        priority, age, _ = self._entries[key]
        queue.push(key, priority, age)
