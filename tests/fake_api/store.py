"""What an API server stores: objects by their names, and how they came to be as they are."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from dra_driver.kube.errors import Gone
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object

_FIRST: Final = 1000  # a version that nobody takes for a count

T = TypeVar("T")


class Key(NamedTuple):
    """Names an object; `namespace` is empty for those that have none."""

    resource: Resource
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: an object as it was, and as it is; None where there is none."""

    key: Key
    old: Object | None
    new: Object | None


class Store:
    """Objects that nobody changes in place, and each change of them since `expire`.

    Each change takes the next version, and all kinds share the versions, as in etcd. `changed` is
    its lock, and is notified of each change. `oldest` is the version from which the history is
    known.
    """

    def __init__(self) -> None:
        self.version = _FIRST
        self.changed = threading.Condition(threading.RLock())
        self._objects: dict[Key, Object] = {}
        self._kinds: defaultdict[Resource, dict[Key, Object]] = defaultdict(dict)  # the same
        self._history: list[Entry] = []
        self.oldest = _FIRST

    def find(self, key: Key) -> Object | None:
        """The object, not to be changed."""
        return self._objects.get(key)

    def all_keys(self) -> list[Key]:
        """The names of all objects, in the order in which they came."""
        return [*self._objects]

    def of_kind(self, resource: Resource, namespace: str = "") -> Iterator[Object]:
        """The objects in the order of their names, as a list has them."""
        with self.changed:
            found = self._kinds[resource]
            for key in sorted(found, key=_order):
                if namespace in {"", key.namespace}:
                    yield found[key]

    def put(self, key: Key, obj: Object) -> Object:
        """Store the object at the next version; gives it as stored."""
        with self.changed:
            stored = self._at_next_version(obj)
            self._history.append(Entry(key, self._objects.get(key), stored))
            self._objects[key] = self._kinds[key.resource][key] = stored
            self.changed.notify_all()
            return stored

    def remove(self, key: Key) -> Object:
        """Forget the object; gives it at the version of its end."""
        with self.changed:
            gone = self._at_next_version(self._objects.pop(key))
            del self._kinds[key.resource][key]
            self._history.append(Entry(key, gone, None))
            self.changed.notify_all()
            return gone

    def expire(self) -> None:
        """Forget the history: nothing can be followed from before the present version."""
        with self.changed:
            self.oldest = self.version
            self._history.clear()

    def check(self, version: int) -> None:
        """Raises Gone where the history does not reach back to that version."""
        if version < self.oldest:
            message = f"too old resource version: {version} ({self.oldest})"
            raise Gone(message, status=410, reason="Expired")

    def after(self, version: int) -> list[Entry]:
        """The changes since that version. Raises Gone."""
        self.check(version)
        return self._history[version - self.oldest :]

    def _at_next_version(self, obj: Object) -> Object:
        self.version += 1
        return obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.version)}}


def copied(value: T) -> T:
    """A copy of JSON that shares nothing with it."""
    found: Any = value
    if isinstance(found, dict):
        found = {key: copied(each) for key, each in found.items()}
    elif isinstance(found, list | tuple):
        found = [copied(each) for each in found]
    return found  # type: ignore[no-any-return]  # of the same type


def _order(key: Key) -> tuple[str, str]:
    return key.namespace, key.name
