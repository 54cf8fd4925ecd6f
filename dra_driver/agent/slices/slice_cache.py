"""This node's slices as the API server has them, as far as it has told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dra_driver.kube.api import Change
from dra_driver.model.claim import Object


class SliceCache:
    """Follows a watch, and takes the answers to our own writes before the watch brings them.

    So nobody has to ask the server again to know what stands there. An older version never
    replaces a newer one, as the watch may still tell of what was before a write. A deleted slice
    never comes back, as the answer to its creation may arrive after its deletion. `changed` is
    called when the watch told something new. Thread-safe.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._slices: dict[str, Object] | None = None
        self._deleted: set[str] = set()  # UIDs, since the last list

    @property
    def slices(self) -> tuple[Object, ...] | None:
        """All of them by name; None until they were listed."""
        with self._lock:
            known = self._slices
            return None if known is None else tuple(known[name] for name in sorted(known))

    def on_replace(self, items: Sequence[Object]) -> None:
        with self._lock:
            self._slices = {_name(each): each for each in items}
            self._deleted.clear()
        self._changed()

    def on_event(self, change: Change, obj: Object) -> None:
        news = self.on_removed(obj) if change is Change.DELETED else self.on_written(obj)
        if news:
            self._changed()

    def on_written(self, obj: Object) -> bool:
        """The server stored this; says whether that was news."""
        with self._lock:
            known = self._listed()
            if _uid(obj) in self._deleted or not _is_newer(obj, known.get(_name(obj))):
                return False
            known[_name(obj)] = obj
            return True

    def on_removed(self, obj: Object) -> bool:
        """That slice is gone from the server; says whether that was news."""
        with self._lock:
            self._deleted.add(_uid(obj))
            found = self._listed().get(_name(obj))
            if found is None or _uid(found) != _uid(obj):
                return False
            del self._listed()[_name(obj)]
            return True

    def _listed(self) -> dict[str, Object]:
        assert (
            self._slices is not None
        )  # a reflector lists before it watches, and we before we write
        return self._slices


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _is_newer(obj: Object, known: Object | None) -> bool:
    if known is None or _uid(obj) != _uid(known):
        return True
    # Resource versions of one object compare as numbers (documented since Kubernetes 1.35).
    return int(obj["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])
