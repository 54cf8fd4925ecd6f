"""What a mode adds to preparing a claim: what it counts, makes on a card, and takes away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from dra_driver.model.card import Card
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.records import PreparedDevice


class ModeDriver(Protocol):
    """The steps of one hold.

    All but `total` are called with the card's lock held, may find their work done already by a
    process that was killed, and raise GcuError.
    """

    def snapshot(self, hold: PreparedDevice, /) -> PreparedDevice:
        """Look, before the intent is written: the hold with what must be known later, as what
        `create` made, or what was promised. Changes nothing; raises ForeignCard where the card is
        not ours to use."""

    def total(self, hold: PreparedDevice, card: Card, /) -> int | None:
        """How much there is to give out of the surveyed hold's card while it is empty; None where
        nothing is counted."""

    def create(self, hold: PreparedDevice, card: Card, /) -> PreparedDevice:
        """Make on the card what the hold stands for, the intent being durable: the hold with
        what was made."""

    def verify(self, hold: PreparedDevice, /) -> PreparedDevice | None:
        """The prepared hold with what is there of it; None where it must be made again."""

    def destroy(self, hold: PreparedDevice, /) -> None:
        """Take away what was made, whether or not `create` came to its end."""

    def reset(self, card: PciAddress, /) -> bool:
        """Put the card into the state in which any mode may come, nobody holding anything of it
        in this mode; say whether it is so now."""


class WholeCard:
    """A whole card is there already, in the state in which it was left."""

    def snapshot(self, hold: PreparedDevice, /) -> PreparedDevice:
        return hold

    def total(self, _hold: PreparedDevice, _card: Card, /) -> int | None:
        return None

    def create(self, hold: PreparedDevice, _card: Card, /) -> PreparedDevice:
        return hold

    def verify(self, hold: PreparedDevice, /) -> PreparedDevice | None:
        return hold

    def destroy(self, hold: PreparedDevice, /) -> None:
        """Nothing was made."""

    def reset(self, _card: PciAddress, /) -> bool:
        return True


class SharedCard(WholeCard):
    """Slices of a card are there already, too; they are but counted."""

    def __init__(self, slice_count: Callable[[PciAddress], int]) -> None:
        """`slice_count` says into how many slices a card is cut."""
        self._slice_count = slice_count

    def snapshot(self, hold: PreparedDevice, /) -> PreparedDevice:
        """The hold with the number of slices that it is counted by: it holds for as long as any
        slice of the card is held, whatever the rules say by then."""
        return replace(hold, total=self._slice_count(hold.card))

    def total(self, hold: PreparedDevice, _card: Card, /) -> int | None:
        return hold.total
