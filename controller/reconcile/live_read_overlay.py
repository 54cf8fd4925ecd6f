"""Pods that were read live, beside what the watch tells of them."""

from __future__ import annotations

from controller.cache import pods
from controller.cache.cache import is_newer
from controller.cache.keys import Key
from dra_driver.model.claim import Object


class LivePods:
    """What was read of a pod counts until the watch tells as much: decided on what it told before,
    the same would come out again. The cache is not told: only with the watch's word follows what
    else a change of a pod means."""

    def __init__(self) -> None:
        self._read: dict[Key, tuple[str, Object | None]] = {}

    def learn(self, pod: Object, live: Object | None) -> None:
        """What `pod` is now; None where there is none of its name."""
        same = live is not None and pods.uid_of(live) == pods.uid_of(pod)
        self._read[pods.key_of(pod)] = pods.uid_of(pod), live if same else None

    def newest(self, key: Key, told: Object | None) -> Object | None:
        """The pod of which the watch `told` last; None where it is gone, or another one."""
        if key not in self._read:
            return told
        uid, live = self._read[key]
        if told is None or pods.uid_of(told) != uid or _tells(told, live):
            del self._read[key]
            return told
        return live


def _tells(told: Object, live: Object | None) -> bool:
    """Whether the watch has told as much by now."""
    return live is not None and not is_newer(live, told)
