"""The order among pods: priority, then namespaces in turn, then age. Pure: told the time.

One thread decides for all. A tenant writes selectors and requests as costly as the API allows, in
as many pods as its quota allows, and also chooses their priority where no quota limits it. So a
namespace whose steps took too long lately comes after all others, whatever its pods' priority.
Whoever takes ordinary time is never charged anything, however many pods it has.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from typing import Final, NamedTuple

from controller.cache.keys import Key

Rank = tuple[int, str]  # a priority, the least first, and a timestamp
_FREE: Final = 0.02  # seconds of a step that are charged to nobody; ordinary ones take less
_SHARE: Final = 0.2  # seconds beyond that which a namespace may have taken lately
_HALF_LIFE: Final = 10.0  # seconds until half of what was taken is forgiven
_FEW: Final = 1024  # namespaces that are remembered; outdated entries that are kept


class Namespaces:
    """Start-time fair queueing of namespaces: one that had a step comes after all that had none
    since. A namespace that was idle gains one step by that, not as many as others had."""

    def __init__(self) -> None:
        self._served: dict[str, int] = {}
        self._latest = 0
        self._taken: dict[str, tuple[float, float]] = {}  # seconds, and when they were counted

    def last_served(self, namespace: str) -> int:
        """The least comes first."""
        return self._served.get(namespace, 0)

    def serve(self, namespace: str) -> None:
        """A step for the namespace begins."""
        self._latest = max(self.last_served(namespace), self._latest)
        self._served[namespace] = self._latest + 1
        if len(self._served) > 2 * _FEW:
            recent = sorted(self._served.values())[-_FEW]
            self._served = {name: at for name, at in self._served.items() if at >= recent}

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


class Place(NamedTuple):
    """Where a key stands; the least comes first. `excess` and `last_served` are its namespace's."""

    excess: float
    priority: int
    last_served: int
    age: str
    number: int  # of equal ones the key that was pushed first comes first
    key: Key


class FairQueue:
    """Each key stands once, in the lane of its priority and namespace, which is sorted by age. A
    heap orders the first ones of all lanes; what is outdated is dropped when it comes to the top.
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._lanes: dict[tuple[int, str], list[tuple[str, int, Key]]] = {}
        self._places: dict[Key, tuple[int, str, int]] = {}  # priority, age, number
        self._heads: list[Place] = []  # without excess, which changes with time
        self._pushed = 0

    def push(self, key: Key, rank: Rank) -> None:
        """No effect where the key stands here already."""
        if key in self._places:
            return
        self._pushed += 1
        priority, age = rank
        self._places[key] = priority, age, self._pushed
        lane = self._lanes.setdefault((priority, key.namespace), [])
        insort(lane, (age, self._pushed, key))
        if lane[0][1] == self._pushed:
            self._push_head(priority, key.namespace)

    def head(self, now: float) -> Place | None:
        """The key that comes first."""
        yielding: list[Place] = []
        while self._heads:
            place = heapq.heappop(self._heads)
            lane = self._lanes.get((place.priority, place.key.namespace))
            if lane is None or lane[0][1] != place.number:
                continue
            served = self._namespaces.last_served(place.key.namespace)
            excess = self._namespaces.excess(place.key.namespace, now)
            if served != place.last_served:
                heapq.heappush(self._heads, place._replace(last_served=served))
            elif excess:
                yielding.append(place._replace(excess=excess))
            else:
                yielding.append(place)
                break
        for place in yielding:
            heapq.heappush(self._heads, place._replace(excess=0.0))
        return min(yielding, default=None)

    def remove(self, key: Key) -> None:
        """No effect where the key is not here."""
        found = self._places.pop(key, None)
        if found is None:
            return
        priority, age, number = found
        lane = self._lanes[priority, key.namespace]
        index = bisect_left(lane, (age, number, key))
        del lane[index]
        if not lane:
            del self._lanes[priority, key.namespace]
        elif index == 0:
            self._push_head(priority, key.namespace)

    def _push_head(self, priority: int, namespace: str) -> None:
        served = self._namespaces.last_served(namespace)
        head = Place(0.0, priority, served, *self._lanes[priority, namespace][0])
        heapq.heappush(self._heads, head)
        if len(self._heads) > 2 * len(self._lanes) + _FEW:
            self._heads = []
            for lane in tuple(self._lanes):
                self._push_head(*lane)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)
