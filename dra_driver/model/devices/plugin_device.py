"""What the kubelet counts where a card is served as a device plugin: devices with IDs of ours.

An ID names card, kind and ordinal, ``0000:0d:00.0/shared/3``, so that what the kubelet recorded
says by itself what is held. A card's shared slices and its units of DRS size are numbered from 0;
a whole card has the ordinal 0 alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from dra_driver.model import names
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

RESOURCES: Final[Mapping[Mode, str]] = {
    Mode.WHOLE: names.RESOURCE_WHOLE,
    Mode.SHARED: names.RESOURCE_SHARED,
    Mode.DRS: names.RESOURCE_DRS,
}
"""The extended resource by which a container asks for each mode."""

_ID: Final = re.compile(r"([0-9a-f:.]+)/(whole|shared|drs)/(0|[1-9]\d{0,3})")


class PluginDevice(msgspec.Struct, frozen=True, order=True):
    """One device of the device plugin; its text is the ID."""

    card: PciAddress
    mode: Mode
    ordinal: int

    @classmethod
    def parse(cls, text: str) -> PluginDevice:
        """Raises InvalidValue for what is no ID of ours."""
        match = _ID.fullmatch(text)
        if match is None:
            raise InvalidValue(f"{text[:80]!r} is not the ID of a device of this plugin")
        device = cls(PciAddress.parse(match[1]), Mode(match[2]), int(match[3]))
        # A second spelling would be a second device.
        if str(device) != text:
            raise InvalidValue(f"{text!r} is the device {device}, spelled otherwise")
        return device

    def __str__(self) -> str:
        return f"{self.card}/{self.mode.value}/{self.ordinal}"
