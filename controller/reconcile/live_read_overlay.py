"""Pods that were read live, over the cache."""

from __future__ import annotations

from controller.cache import pods
from controller.cache.cache import is_newer
from controller.cache.keys import Key
from dra_driver.model.claim import Object


class LiveReadOverlay:
    """A pod that was read counts until the watch delivers the same version or a newer one: decided
    on an older one, the result would be the same again. The cache does not get it: the event
    handlers act on what the watch delivers."""

    def __init__(self) -> None:
        self._read: dict[Key, tuple[str, Object | None]] = {}

    def learn(self, pod: Object, live: Object | None) -> None:
        """What `pod` is now; None where there is none of its name."""
        same = live is not None and pods.uid_of(live) == pods.uid_of(pod)
        self._read[pods.key_of(pod)] = pods.uid_of(pod), live if same else None

    def newest(self, key: Key, cached: Object | None) -> Object | None:
        """The newer one of the pod that was read and the `cached` one; None if it is gone, or
        another one has its name."""
        if key not in self._read:
            return cached
        uid, live = self._read[key]
        has_caught_up = live is not None and cached is not None and not is_newer(live, cached)
        if cached is None or pods.uid_of(cached) != uid or has_caught_up:
            del self._read[key]
            return cached
        return live
