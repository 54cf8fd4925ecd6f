"""What each mode does for a device: what it counts, creates on a card and destroys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card
from dra_driver.model.claims.measures import (
    Share,
    memory_per_slice,
    share_of_units,
    slice_shares,
    whole_share,
)
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.modes.drs import DrsCard


class ModeDriver(Protocol):
    """The steps for one device.

    All but `total` are called with the card's lock held, and raise GcuError. A process that was
    killed may have done their work already. `changes_card` is whether `create` and `destroy` change
    anything on the card.
    """

    @property
    def changes_card(self) -> bool: ...

    def with_state_before(self, device: PreparedDevice, /) -> PreparedDevice:
        """The device with the instances that the card has before the intent is written, so that
        later steps can identify a new one. Changes nothing. Raises ForeignCard if another program
        uses the card."""

    def total(self, device: PreparedDevice, card: Card, /) -> int | None:
        """The capacity of the empty card, in slices or sizes; None if it is not counted."""

    def share(self, device: PreparedDevice, card: Card, /) -> Share | None:
        """What the device is of its card; None while that is unknown. Changes nothing, and needs
        no lock."""

    def create(self, device: PreparedDevice, card: Card, /) -> PreparedDevice:
        """Create the device on the card, once the intent is durable. Returns the device with its
        new instance."""

    def verify(self, device: PreparedDevice, /) -> PreparedDevice | None:
        """The prepared device as it is on the card; None if it must be created again."""

    def destroy(self, device: PreparedDevice, /) -> None:
        """Destroy what was created, whether or not `create` ended."""

    def reset(self, card: PciAddress, /) -> bool:
        """Make a card that no owner uses in this mode ready for any mode. Returns whether it is."""


class WholeCard:
    """A whole card needs nothing."""

    changes_card = False

    def with_state_before(self, device: PreparedDevice, /) -> PreparedDevice:
        return device

    def total(self, _device: PreparedDevice, _card: Card, /) -> int | None:
        return None

    def share(self, _device: PreparedDevice, card: Card, /) -> Share | None:
        return whole_share(card.memory_mib)

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
        of the card is in use, even if the rules change."""
        return replace(device, total=self._slice_count(device.card))

    def total(self, device: PreparedDevice, _card: Card, /) -> int | None:
        return device.total

    def share(self, device: PreparedDevice, card: Card, /) -> Share | None:
        total = self._slice_count(device.card)
        shares = slice_shares(total, memory_per_slice(card.memory_mib, total))
        return share_of_units(shares, device.amount)


def all_modes(
    *,
    drs: Drs,
    tables: ProfileTables,
    journal: Journal,
    slice_count: Callable[[PciAddress], int],
) -> Mapping[Mode, ModeDriver]:
    """By mode; `slice_count` gives the number of slices of a card."""
    return {
        Mode.WHOLE: WholeCard(),
        Mode.SHARED: SharedCard(slice_count),
        Mode.DRS: DrsCard(drs, tables, journal.snapshot),
    }
