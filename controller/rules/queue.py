"""The pods that wait for devices, and since when. Pure: told the time.

What is freed goes to the pod of the highest priority, then to the oldest: `rank` is the order in
which the agenda takes up what is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controller.cluster import pods
from controller.work.agenda import Key, Rank, Subject
from dra_driver.model.claim import Object

_FIRST: Rank = (-(2**63), "")


class Queue:
    """`pod` gives the pod of a key as it is now."""

    def __init__(self, pod: Callable[[Key], Object | None]) -> None:
        self._pod = pod
        self._since: dict[Key, float] = {}

    def enter(self, key: Key, now: float) -> float:
        """The pod waits; gives since when."""
        return self._since.setdefault(key, now)

    def leave(self, key: Key) -> None:
        self._since.pop(key, None)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._since)

    def __len__(self) -> int:
        return len(self._since)

    def rank(self, key: Key) -> Rank:
        """The least comes first. A claim's turn frees devices, if anything: it goes before pods."""
        pod = self._pod(key) if key.subject is Subject.POD else None
        return _FIRST if pod is None else pods.urgency(pod)
