"""This node's slices on the API server, as far as they are known."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.slices.slices import devices_of, name_of
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from dra_driver.util.hooks import ChangeHook


class SliceCache:
    """The handler of a watch, which also takes the answers to the agent's own writes, before the
    watch delivers them. So no request is needed to know the present slices.

    An older version never replaces a newer one: the watch may deliver it after a write. A deleted
    slice never comes back: the answer to its creation may arrive after its deletion. `on_change`
    is called when the watch has delivered a change. Thread-safe.
    """

    def __init__(self) -> None:
        self.on_change = ChangeHook()
        self._lock = threading.Lock()
        self._slices: dict[str, Object] = {}
        self._is_listed = False
        self._deleted: set[str] = set()  # UIDs, since the last list
        self.unwatched: tuple[Object, ...] | None = None
        """Slices that no watch delivers, as they are read before the first write: those of the
        other form. They are obsolete."""

    @property
    def slices(self) -> tuple[Object, ...] | None:
        """The unwatched ones, and the others, sorted by name; None until these were listed."""
        with self._lock:
            if not self._is_listed:
                return None
            watched = (self._slices[name] for name in sorted(self._slices))
            return (*(self.unwatched or ()), *watched)

    @property
    def devices(self) -> Devices:
        """The published devices; none until the slices were listed."""
        return devices_of(self.slices or ())

    def on_replace(self, items: Sequence[Object]) -> None:
        with self._lock:
            self._slices = {name_of(each): each for each in items}
            self._is_listed = True
            self._deleted.clear()
        self.on_change()

    def on_event(self, change: Change, obj: Object) -> None:
        changed = self.on_removed(obj) if change is Change.DELETED else self.on_written(obj)
        if changed:
            self.on_change()

    def on_written(self, obj: Object) -> bool:
        """The server has stored this slice; returns whether that is new."""
        with self._lock:
            known = self._slices.get(name_of(obj))
            if _uid(obj) in self._deleted or not _is_newer(obj, known):
                return False
            self._slices[name_of(obj)] = obj
            return True

    def on_removed(self, obj: Object) -> bool:
        """The server has deleted that slice; returns whether that is new."""
        with self._lock:
            self._deleted.add(_uid(obj))
            found = self._slices.get(name_of(obj))
            if found is None or _uid(found) != _uid(obj):
                return False
            del self._slices[name_of(obj)]
            return True


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _is_newer(obj: Object, known: Object | None) -> bool:
    if known is None or _uid(obj) != _uid(known):
        return True
    # Resource versions of one object compare as numbers (documented since Kubernetes 1.35).
    return int(obj["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])
