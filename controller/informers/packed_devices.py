"""The devices of a slice as compressed JSON.

They are read when the slice is new, and when a DeviceTaintRule or another slice of its pool
changes: `controller.allocator.inventory`. Of 24 devices it takes 1 KB instead of 17.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from dra_driver.kube.decode import decode

_LEVEL: Final = 1  # the quickest; devices of a node are alike


class PackedDevices:
    """Iterates over ``spec.devices`` as they were listed. Equal where the server wrote the same."""

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
            # Devices of all nodes have the same few names, and the inventory keeps them.
            each["name"] = sys.intern(each["name"])
            yield each

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedDevices) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)
