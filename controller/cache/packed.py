"""Parts of objects as the bytes that they were decoded from, for what a cluster has many of and the
controller seldom reads. Each read decodes again.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from controller.cache.interner import Interner
from dra_driver.kube.decode import decode
from dra_driver.model.claims.claim import Object

_LEVEL: Final = 1  # the quickest; devices of a node are alike


Fields = Mapping[str, tuple[str, ...]]
"""Fields by the section of an object that they are in."""


class PackedObject(Mapping[str, Any]):
    """Reads like the object. A claim that a pod uses takes 0.6 KB instead of 2.4."""

    __slots__ = ("_own", "_shared")

    def __init__(self, interner: Interner, alike: Fields, obj: Object) -> None:
        shared: Object = {}
        for section, fields in alike.items():
            found = obj.get(section) or {}
            if common := {field: found.pop(field) for field in fields if field in found}:
                shared[section] = common
        self._shared: Object = interner(shared)
        self._own = msgspec.msgpack.encode(obj)

    def unpack(self) -> Object:
        """As a dict. Nobody may alter what is in it."""
        own: Object = msgspec.msgpack.decode(self._own)
        for section, fields in self._shared.items():
            own[section].update(fields)
        return own

    def __getitem__(self, field: str) -> Any:
        return self.unpack()[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self.unpack())

    def __len__(self) -> int:
        return len(self.unpack())

    def __or__(self, other: Mapping[str, Any]) -> Object:
        return self.unpack() | dict(other)

    def __ror__(self, other: Mapping[str, Any]) -> Object:
        return dict(other) | self.unpack()


def packed(interner: Interner, alike: Fields, obj: Object) -> Object:
    """`alike` are the fields that many objects have in common: one dict of them serves all. They
    are taken out of `obj`. The result has the type of all watched objects, which nobody alters."""
    return cast("Object", PackedObject(interner, alike, obj))


def is_packed(obj: Mapping[str, Any]) -> bool:
    return isinstance(obj, PackedObject)


def unpacked(obj: Mapping[str, Any]) -> Object:
    """The object as a dict, for several reads."""
    return obj.unpack() if isinstance(obj, PackedObject) else cast("Object", obj)


class PackedDevices:
    """Iterates over ``spec.devices`` as they were listed. Equal where the server wrote the same.
    Of 24 devices it takes 1 KB instead of 17. The inventory reads them when the slice is new, and
    when a DeviceTaintRule or another slice of its pool changes."""

    __slots__ = ("_packed",)

    def __init__(self, text: bytes) -> None:
        self._packed = zlib.compress(text, _LEVEL)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        text = zlib.decompress(self._packed)
        try:
            devices = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            devices = decode(text)
        for each in devices or ():
            # Devices of all nodes have the same few names, which the inventory stores.
            each["name"] = sys.intern(each["name"])
            yield each

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedDevices) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)
