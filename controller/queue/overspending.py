"""What long decisions cost: the pod a pause, its namespace the place in line. Pure.

One thread decides for all. A tenant writes selectors and requests as costly as the API allows, in
as many pods as its quota allows, and also chooses their priority where no quota limits it. So a
namespace whose steps took too long lately comes after all others, whatever its pods' priority.
Whoever takes ordinary time is never charged anything, however many pods it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from controller.cache.keys import Key
from dra_driver.kube.backoff import Backoff

_FREE: Final = 0.02  # seconds of a step that are charged to nobody; ordinary ones take less
_SHARE: Final = 0.2  # seconds beyond that which a namespace may have taken lately
_HALF_LIFE: Final = 10.0  # seconds until half of what was taken is forgiven
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 300.0


class Overspending:
    """One instance, one thread. `draw` gives numbers in [0, 1)."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._taken: dict[str, tuple[float, float]] = {}  # seconds, and when they were counted
        self._pauses: dict[Key, tuple[float, Backoff]] = {}

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

    def stop(self, key: Key, now: float) -> float:
        """A decision for the key was stopped; gives after how many seconds it goes on. They grow
        until one is not stopped."""
        _, backoff = self._pauses.get(key) or (
            now,
            Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE, draw=self._draw),
        )
        pause = backoff.next()
        self._pauses[key] = now + pause, backoff
        return pause

    def until(self, key: Key) -> float:
        """Before this time nothing is decided for the key."""
        known = self._pauses.get(key)
        return 0.0 if known is None else known[0]

    def forget(self, key: Key) -> None:
        """The decision came to its end, or there is nothing to decide any more."""
        self._pauses.pop(key, None)

    def _lately(self, namespace: str, now: float) -> float:
        seconds, at = self._taken.get(namespace, (0.0, now))
        forgiven: float = 0.5 ** ((now - at) / _HALF_LIFE)
        return seconds * forgiven
