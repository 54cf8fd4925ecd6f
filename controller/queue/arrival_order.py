"""Which pod is before which in line: by priority, then by age. Pure."""

from __future__ import annotations

from typing import Final

from controller.cache import pods
from controller.cache.keys import Key
from dra_driver.model.claims.claim import Object

Rank = tuple[int, str, int]
"""The negative priority, the time of creation, and a number; the smallest rank comes first. No two
keys that are compared have the same number."""

_LAST: Final = 2**63


class ArrivalOrder:
    """The server's times are whole seconds, and kube-scheduler tries pods in the order in which it
    saw them first, gated or not (QueueingParams.Timestamp). So pods of one second are numbered as
    they come. The queue and the guard of the pods that starve go by the same order. One instance,
    one thread."""

    def __init__(self) -> None:
        self._last = 0
        self._numbers: dict[Key, int] = {}

    def see(self, key: Key, pod: Object) -> Rank:
        """The pod is put into the queue. A bound one has been scheduled: its number is not kept."""
        self._last += 1
        number = self._numbers.setdefault(key, self._last)
        if pods.node_name(pod):
            del self._numbers[key]
        return *pods.urgency(pod), number

    def rank(self, key: Key, pod: Object) -> Rank:
        """Without a number the pod is the last one of its second."""
        return *pods.urgency(pod), self._numbers.get(key, _LAST)

    def forget(self, key: Key) -> None:
        """The pod is gone. Another one may have its name."""
        self._numbers.pop(key, None)

    def clear(self) -> None:
        """Forget all pods."""
        self._numbers.clear()

    def __len__(self) -> int:
        return len(self._numbers)
