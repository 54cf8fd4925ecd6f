"""The objects of one kind, as a reflector delivers them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, Protocol

from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from dra_driver.util.hooks import OnChange


class OnObject(Protocol):
    """Called with an object before and after a change, None where there was or is none. It has the
    lock."""

    def __call__(self, old: Object | None, new: Object | None) -> None: ...


class ObjectStore:
    """A `WatchHandler`. Objects are by UID; `lock` is held while they change."""

    def __init__(self, lock: threading.Lock, on_object: OnObject, on_change: OnChange) -> None:
        """`on_change` is called without the lock after objects have changed."""
        self._lock: Final = lock
        self._on_object = on_object
        self._on_change = on_change
        self._objects: dict[str, Object] = {}

    def on_replace(self, items: Sequence[Object]) -> None:
        with self._lock:
            listed = {str(each["metadata"]["uid"]): each for each in items}
            for uid in self._objects.keys() - listed.keys():
                self._put(uid, None)
            for uid, new in listed.items():
                self._put(uid, new)
        self._on_change()

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            self._put(str(obj["metadata"]["uid"]), None if change is Change.DELETED else obj)
        self._on_change()

    def on_not_served(self) -> None:
        """There are none, or none that the user may read."""
        self.on_replace(())

    def _put(self, uid: str, new: Object | None) -> None:
        old = self._objects.get(uid)
        if new is None:
            self._objects.pop(uid, None)
        else:
            self._objects[uid] = new
        if old is None or new is None or _version(old) != _version(new):
            self._on_object(old, new)


def _version(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))
