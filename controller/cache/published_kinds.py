"""What is published, for other threads than the deciding one, whose cache is its own: the kinds of
cards that can be shared, and DeviceClasses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from controller.allocator.device import DeviceKind, kind_of
from controller.cache.packed import unpacked
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import ReadOnlyObject
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")
_UNREADABLE: Final = (InvalidValue, LookupError, TypeError, AttributeError, ValueError)


class Watched(Generic[_Read]):
    """The handler of a watch, with what `read` makes of each object. An object that cannot be read
    is left out."""

    def __init__(self, read: Callable[[ReadOnlyObject], _Read]) -> None:
        self._read = read
        self._by_name: Mapping[str, _Read] = MappingProxyType({})

    @property
    def by_name(self) -> Mapping[str, _Read]:
        """All that was read, for any thread: after an event it is another mapping."""
        return self._by_name

    def on_replace(self, items: Sequence[ReadOnlyObject]) -> None:
        found: dict[str, _Read] = {}
        for item in items:
            self._put(found, item)
        self._by_name = MappingProxyType(found)

    def on_event(self, change: Change, obj: ReadOnlyObject) -> None:
        found = dict(self._by_name)
        found.pop(obj["metadata"]["name"], None)
        if change is not Change.DELETED:
            self._put(found, obj)
        self._by_name = MappingProxyType(found)

    def _put(self, found: dict[str, _Read], obj: ReadOnlyObject) -> None:
        name = obj["metadata"]["name"]
        try:
            found[name] = self._read(obj)
        except _UNREADABLE as error:
            # The watch goes on: one object that differs from its model must not end it.
            logger.warning("%s cannot be read: %r", name, error)


class PublishedKinds:
    """`slices` and `classes` follow the watches of ResourceSlices and DeviceClasses."""

    def __init__(self) -> None:
        self.slices = Watched(_kinds_of)
        self.classes = Watched(unpacked)
        self._united: tuple[object, frozenset[DeviceKind]] = (None, frozenset())

    @property
    def kinds(self) -> frozenset[DeviceKind]:
        """The kinds of all published devices that many claims can have a share of."""
        by_slice, (united, kinds) = self.slices.by_name, self._united
        if by_slice is not united:
            kinds = frozenset().union(*by_slice.values())
            self._united = by_slice, kinds
        return kinds


def _kinds_of(resource_slice: ReadOnlyObject) -> frozenset[DeviceKind]:
    spec = resource_slice["spec"]
    if spec["driver"] != DRIVER:
        return frozenset()
    kinds = map(kind_of, spec.get("devices") or ())
    return frozenset(kind for kind in kinds if kind.shared_capacity)
