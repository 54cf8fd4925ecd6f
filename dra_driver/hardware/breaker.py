"""Who did not answer in time, so that it is not waited for again and again.

A call that hangs takes its whole limit. Who goes through many things of few cards, and keeps others
waiting meanwhile, asks a card that hangs for the first of them only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dra_driver.hardware.drs.errors import CardBusy, CardSilent
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

EVERYBODY: Final = "`efsmi` for all cards"
"""Such a call hangs when one of the cards does."""


def card_name(address: PciAddress) -> str:
    """How a card is named here."""
    return f"card {address}"


class HungCardBreaker:
    """Outside of `step` nothing is remembered. Steps are one thread's, while no other asks."""

    def __init__(self) -> None:
        self._silent: dict[str, HardwareError] = {}
        self._hung: dict[str, HardwareError] | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """One of several. Who does not answer in it is asked on until its end, as it may have to be
        seen what a call did that hung, and no more in the next ones."""
        self._hung = {}
        try:
            yield
        finally:
            self._silent |= self._hung
            self._hung = None

    def begin(self, silent: Mapping[str, HardwareError]) -> None:
        """Before the first step: who did not answer a moment ago, and why."""
        self._silent |= silent

    def end(self) -> None:
        """After the last step: everybody is asked again."""
        self._silent.clear()

    @contextmanager
    def asking(self, whom: str) -> Iterator[None]:
        """Around a call; `whom` it asks, for people, too. Raises CardSilent where that did not
        answer in an earlier step."""
        earlier = self._silent.get(whom)
        if earlier is not None:
            raise CardSilent(
                f"{whom} is not asked again for now: {earlier.what}", remedy=earlier.remedy
            )
        try:
            yield
        except (EfsmiHung, CardBusy) as error:
            if self._hung is not None:
                self._hung[whom] = error
            raise
