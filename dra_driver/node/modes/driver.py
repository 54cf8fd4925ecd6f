"""What each mode does for a device: what it counts, creates on a card and destroys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from dra_driver.model.card import Card
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.records import PreparedDevice


class ModeDriver(Protocol):
    """The steps for one device.

    All but `total` are called with the card's lock held, may find their work done by a process that
    was killed since, and raise GcuError.
    """

    def with_state_before(self, device: PreparedDevice, /) -> PreparedDevice:
        """The device with what the card has before the intent is written, by which the later steps
        know what is new. Changes nothing. Raises ForeignCard where somebody else uses the card."""

    def total(self, device: PreparedDevice, card: Card, /) -> int | None:
        """The capacity of the empty card, in slices or sizes; None where nothing is counted."""

    def create(self, device: PreparedDevice, card: Card, /) -> PreparedDevice:
        """Create on the card what the device needs, once the intent is durable; returns the device
        with what was created."""

    def verify(self, device: PreparedDevice, /) -> PreparedDevice | None:
        """The prepared device as it is on the card; None where it must be created again."""

    def destroy(self, device: PreparedDevice, /) -> None:
        """Destroy what was created, whether or not `create` ended."""

    def reset(self, card: PciAddress, /) -> bool:
        """Make a card that nobody holds in this mode ready for any mode; returns whether it is."""


class WholeCard:
    """A whole card needs nothing."""

    def with_state_before(self, device: PreparedDevice, /) -> PreparedDevice:
        return device

    def total(self, _device: PreparedDevice, _card: Card, /) -> int | None:
        return None

    def create(self, device: PreparedDevice, _card: Card, /) -> PreparedDevice:
        return device

    def verify(self, device: PreparedDevice, /) -> PreparedDevice | None:
        return device

    def destroy(self, device: PreparedDevice, /) -> None:
        """Nothing was created."""

    def reset(self, _card: PciAddress, /) -> bool:
        return True


class SharedCard(WholeCard):
    """Slices of a card are only counted."""

    def __init__(self, slice_count: Callable[[PciAddress], int]) -> None:
        """`slice_count` gives the number of slices of a card."""
        self._slice_count = slice_count

    def with_state_before(self, device: PreparedDevice, /) -> PreparedDevice:
        """The device with the number of slices of its card: that number counts as long as any slice
        of the card is held, even if the rules change."""
        return replace(device, total=self._slice_count(device.card))

    def total(self, device: PreparedDevice, _card: Card, /) -> int | None:
        return device.total
