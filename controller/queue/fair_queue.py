"""The order among pods: priority, then namespaces round-robin, then age. Pure.

One thread decides for all tenants. A tenant can write selectors and requests as costly as the API
allows, in as many pods as its quota allows, and of any priority that no quota limits. So a
namespace whose steps took too long lately comes after all others, whatever the priority of its
pods. A namespace with ordinary steps is charged nothing, however many pods it has.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from prometheus_client import Histogram

from controller.cache.keys import Key
from controller.queue.arrival_order import Rank
from dra_driver.selector.allowance import SECONDS, Allowance

_FREE: Final = 0.02  # seconds of a step that are not charged; an ordinary step takes less
_SHARE: Final = 0.2  # charged seconds that a namespace may have without coming last
_HALF_LIFE: Final = 10.0  # seconds in which half of what was charged is forgiven
_LIMIT: Final = 1024  # namespaces that are remembered, and outdated heads


class Namespaces:
    """Start-time fair queueing of namespaces: a namespace that had a step comes after all that had
    none since. A namespace that was idle gains one step by that, not as many as others had."""

    def __init__(self) -> None:
        self._served: dict[str, int] = {}
        self._latest = 0
        self._charged: dict[str, tuple[float, float]] = {}  # seconds, and when that was computed

    def last_served(self, namespace: str) -> int:
        """The namespace with the smallest number comes first."""
        return self._served.get(namespace, 0)

    def begin_step(self, namespace: str) -> None:
        """A step for the namespace begins."""
        self._latest = max(self.last_served(namespace), self._latest)
        self._served[namespace] = self._latest + 1
        if len(self._served) > 2 * _LIMIT:
            recent = sorted(self._served.values())[-_LIMIT]
            self._served = {name: at for name, at in self._served.items() if at >= recent}

    def charge(self, namespace: str, seconds: float, now: float) -> None:
        """A step for the namespace took so long."""
        if seconds > _FREE:
            self._charged[namespace] = self._seconds(namespace, now) + seconds - _FREE, now

    def excess(self, namespace: str, now: float) -> float:
        """Seconds by which the namespace comes after others; 0 for an ordinary namespace."""
        if namespace not in self._charged:
            return 0.0
        seconds = self._seconds(namespace, now)
        if seconds <= _SHARE / 10:
            del self._charged[namespace]
        return seconds if seconds > _SHARE else 0.0

    def _seconds(self, namespace: str, now: float) -> float:
        seconds, at = self._charged.get(namespace, (0.0, now))
        remaining: float = 0.5 ** ((now - at) / _HALF_LIFE)
        return seconds * remaining


@dataclass(slots=True)
class StepLimiter:
    """Limits, measures and charges the steps of the deciding thread. `allowance` is the one of its
    selectors; `durations` has the label ``kind``."""

    allowance: Allowance
    namespaces: Namespaces
    durations: Histogram
    clock: Callable[[], float]
    _began_at: float | None = None

    @contextmanager
    def step(self, kind: str, namespace: str, seconds: float = SECONDS) -> Iterator[None]:
        """One step for an object of the namespace, which is charged. The step may raise
        AllowanceSpent after so many seconds. Steps do not nest."""
        self._began_at = began_at = self.clock()
        self.allowance.begin(seconds)
        try:
            yield
        finally:
            self._began_at = None
            now = self.clock()
            self.durations.labels(kind).observe(now - began_at)
            self.namespaces.charge(namespace, now - began_at, now)

    def running_for(self) -> float:
        """For how many seconds the present step has run; safe for any thread."""
        began_at = self._began_at
        return 0.0 if began_at is None else self.clock() - began_at


class Position(NamedTuple):
    """Where a key is in the queue; the smallest position comes first. `excess` and `last_served`
    are the namespace's, the other numbers the key's `Rank`."""

    excess: float
    priority: int
    last_served: int
    age: str
    number: int
    key: Key


class FairQueue:
    """Each key is once in the lane of its priority and namespace, which is sorted by age. A heap
    orders the heads of all lanes; an outdated head is dropped when it comes to the top."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._lanes: dict[tuple[int, str], list[tuple[str, int, Key]]] = {}
        self._entries: dict[Key, Rank] = {}
        self._heads: list[Position] = []  # without excess, which changes with time

    def push(self, key: Key, rank: Rank) -> None:
        """Has no effect if the key is in the queue already."""
        if key in self._entries:
            return
        priority, age, number = self._entries[key] = rank
        lane = self._lanes.setdefault((priority, key.namespace), [])
        insort(lane, (age, number, key))
        if lane[0][1] == number:
            self._push_head(priority, key.namespace)

    def head(self, now: float) -> Position | None:
        """The key that comes first."""
        heads: list[Position] = []  # the heads of costly namespaces, and the first other one
        while self._heads:
            head = heapq.heappop(self._heads)
            lane = self._lanes.get((head.priority, head.key.namespace))
            if lane is None or lane[0] != head[-3:]:
                continue
            served = self._namespaces.last_served(head.key.namespace)
            if served != head.last_served:
                heapq.heappush(self._heads, head._replace(last_served=served))
                continue
            while self._heads and self._heads[0] == head:  # the key was pushed again
                heapq.heappop(self._heads)
            heads.append(head._replace(excess=self._namespaces.excess(head.key.namespace, now)))
            if not heads[-1].excess:
                break
        for head in heads:
            heapq.heappush(self._heads, head._replace(excess=0.0))
        return min(heads, default=None)

    def head_until(self, rank: Rank, now: float) -> Position | None:
        """The first of the keys that are not behind that rank. Looks at each lane: who is behind in
        the order of ranks may be before them by the turns of namespaces."""
        heads = (
            Position(self._namespaces.excess(namespace, now), priority, served, *lane[0])
            for (priority, namespace), lane in self._lanes.items()
            if (priority, *lane[0][:2]) <= rank
            for served in [self._namespaces.last_served(namespace)]
        )
        return min(heads, default=None)

    def keys(self) -> Iterator[Key]:
        """All keys, by priority and then, in each namespace, by age."""
        for _, lane in sorted(self._lanes.items()):
            for _, _, key in lane:
                yield key

    def remove(self, key: Key) -> None:
        """Has no effect if the key is not in the queue."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        priority, age, number = entry
        lane = self._lanes[priority, key.namespace]
        index = bisect_left(lane, (age, number, key))
        del lane[index]
        if not lane:
            del self._lanes[priority, key.namespace]
        elif index == 0:
            self._push_head(priority, key.namespace)

    def _push_head(self, priority: int, namespace: str) -> None:
        served = self._namespaces.last_served(namespace)
        head = Position(0.0, priority, served, *self._lanes[priority, namespace][0])
        heapq.heappush(self._heads, head)
        if len(self._heads) > 2 * len(self._lanes) + _LIMIT:
            self._heads = []
            for lane in tuple(self._lanes):
                self._push_head(*lane)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
