"""A circuit breaker for cards that hang.

A call of efsmi for a card that hangs takes its whole time limit, and whoever waits for it keeps
others waiting: a recovery, a reconciliation, the kubelet. So after a read has hung, calls for that
card fail at once for as long as one time limit; then the next call tries again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from dra_driver.hardware.drs.locks import CardBusy
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress
from dra_driver.util.hooks import Clock


class CardSilent(HardwareError):
    """A read for the card hung a moment ago: calls fail at once for now."""


class HungCardBreaker:
    """One for the whole agent. Thread-safe.

    Calls for all cards, which hang when one card does, are those for the card None.
    """

    def __init__(self, cooldown: float, *, clock: Clock = time.monotonic) -> None:
        """After a hang, calls fail at once for `cooldown` seconds of the `clock`."""
        self._cooldown = cooldown
        self._clock = clock
        self._hung: dict[PciAddress | None, tuple[float, HardwareError]] = {}

    def on_hung(self, card: PciAddress | None, error: HardwareError) -> None:
        """A read for the card has just hung."""
        self._hung[card] = (self._clock() + self._cooldown, error)

    def check(self, card: PciAddress | None) -> None:
        """Raises CardSilent while calls for the card fail at once. Asked also before a call that
        changes the card: if that hangs, it must be possible to read what it did."""
        until, error = self._hung.get(card, (self._clock(), None))
        if error is None or self._clock() >= until:
            self._hung.pop(card, None)
        else:
            name = "all cards" if card is None else f"card {card}"
            raise CardSilent(
                f"efsmi is not called for {name} again yet: {error.what}", remedy=error.remedy
            )

    @contextmanager
    def read(self, card: PciAddress | None) -> Iterator[None]:
        """Around a call that changes nothing. Raises CardSilent in its place."""
        self.check(card)
        try:
            yield
        except (EfsmiHung, CardBusy) as error:
            self.on_hung(card, error)
            raise
