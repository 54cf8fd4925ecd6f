"""The node's cards as last seen, kept fresh by a thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.hardware.breaker import EVERYBODY, card_name
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.hardware.machine import Inventory, Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.card import Card, Problem
from dra_driver.model.errors import HardwareError
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.util.background import Background
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)

_PATIENCE: Final = 3  # looks that may fail in a row before the cards are tainted for it


class CardCache(Background):
    """Looks at the machine at an interval and when the PCI bus has changed.

    A failed look keeps what was seen before: that the machine cannot be read says nothing
    about its cards. It is repeated sooner than at the next interval, but not at every look at
    the bus, as a tool that hangs should not be called all the time. A card that was seen and is
    no longer found stays, with the problem ``lost``, until it is back or the agent starts anew;
    one for which efsmi does not answer stays as it was seen, with the problem ``efsmi``.
    """

    def __init__(
        self,
        machine: Machine,
        sysfs: Sysfs,
        *,
        presence_interval: float,
        inventory_interval: float,
        changed: Callable[[], None],
        card_events: CardEvents,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("cards")
        self._machine = machine
        self._sysfs = sysfs
        self._presence_interval = presence_interval
        self._inventory_interval = inventory_interval
        self._changed = changed
        self._card_events = card_events
        self._clock = clock
        self._cards: dict[PciAddress, Card] | None = None
        self._unusable: dict[PciAddress, str] = {}
        self._foreign: Mapping[PciAddress, Problem] = {}
        self._bus: object = None
        self._backoff = Backoff(first=presence_interval, longest=inventory_interval)
        self._due = float("-inf")
        self._looked = float("-inf")
        self._failures = 0
        self.problem: str | None = "the hardware has not been read yet"
        # The cards that let the last look wait for a whole limit, and the whole tool where it did.
        self.hung: Mapping[PciAddress, HardwareError] = {}
        self._hung_tool: HardwareError | None = None

    @property
    def latest(self) -> tuple[Card, ...] | None:
        """All cards by address; None until a look succeeded."""
        cards = self._cards
        return None if cards is None else tuple(map(self._with_foreign, cards.values()))

    @property
    def failing(self) -> Problem | None:
        """What all cards have besides while they cannot be looked at for some time."""
        if self._failures < _PATIENCE or self.problem is None:
            return None
        return Problem(TAINT_UNHEALTHY, "efsmi", self.problem)

    @property
    def age(self) -> float:
        """Seconds since the last look that succeeded; infinite before."""
        return self._clock() - self._looked

    def card(self, address: PciAddress) -> Card:
        """The card with its minor and device nodes of this moment; raises HardwareError."""
        known = (self._cards or {}).get(address)
        if known is None:
            reason = self._unusable.get(address) or self.problem
            raise HardwareError(
                f"this node has no usable card {address}" + (f": {reason}" if reason else "")
            )
        return self._with_foreign(self._machine.card(known))

    def index(self, address: PciAddress) -> int | None:
        """The index that efsmi had for the card when it was seen last; None before."""
        known = (self._cards or {}).get(address)
        return None if known is None else known.index

    def hung_calls(self) -> Mapping[str, HardwareError]:
        """What let the last look wait for a whole limit, as `Silence` names it."""
        tool = {} if self._hung_tool is None else {EVERYBODY: self._hung_tool}
        return tool | {card_name(address): error for address, error in self.hung.items()}

    @property
    def foreign(self) -> Mapping[PciAddress, Problem]:
        """The cards that somebody else divides, each with the problem that says so."""
        return self._foreign

    @foreign.setter
    def foreign(self, found: Mapping[PciAddress, Problem]) -> None:
        if found != self._foreign:
            self._foreign = found
            self._changed()

    def start(self) -> None:
        """Look once, then go on in a thread of its own. Never raises, as `look`."""
        self.refresh()
        super().start()

    def refresh(self) -> None:
        """A full look now. Never raises: what went wrong is told in `problem`."""
        before = self._cards
        try:
            self._bus = self._sysfs.functions()
            inventory = self._machine.inventory()
        except HardwareError as error:
            if self.problem != str(error):
                logger.warning("the hardware cannot be read: %s", error)
            self.problem = str(error)
            self.hung, self._hung_tool = {}, error if isinstance(error, EfsmiHung) else None
            self._due = self._clock() + self._backoff.next()
            self._failures += 1
            if self._failures == _PATIENCE:
                self._changed()
            return
        failed, self._failures = self._failures, 0
        self._backoff.reset()
        self._looked = self._clock()
        self._due = self._looked + self._inventory_interval
        self._take(inventory)
        self.hung = {a: HardwareError(inventory.silent[a]) for a in sorted(inventory.hung)}
        # One card that hangs lets each call of all hang.
        self._hung_tool = next(iter(self.hung.values()), None)
        self.problem = None
        if self._cards != before or failed >= _PATIENCE:
            self._changed()

    def tick(self) -> None:
        """Look if it is time, or if the PCI bus is not as it was."""
        if self._clock() >= self._due or self._bus_changed():
            self.refresh()

    def _bus_changed(self) -> bool:
        try:
            return self._sysfs.functions() != self._bus
        except HardwareError as error:
            logger.debug("the PCI bus cannot be read: %s", error)
            return True

    def _take(self, inventory: Inventory) -> None:
        known = self._cards or {}
        found = {card.address: _with_mode(card, known) for card in inventory.cards}
        silent = {a: _silent(known[a], why) for a, why in inventory.silent.items() if a in known}
        missing = {a: _lost(known[a], inventory) for a in known if a not in found | silent}
        unusable = {**inventory.unusable, **inventory.silent}
        self._unusable = {a: reason for a, reason in unusable.items() if a not in known}
        self._cards = dict(sorted((found | silent | missing).items()))
        self._card_events.emit(known, self._cards, self._unusable)

    def _with_foreign(self, card: Card) -> Card:
        problem = self._foreign.get(card.address)
        return card if problem is None else replace(card, problems=(*card.problems, problem))

    def run(self) -> None:
        while not self._wait(self._presence_interval):
            self.tick()


def _with_mode(card: Card, known: Mapping[PciAddress, Card]) -> Card:
    """The mode is not told while each card must be asked by itself: then it is as it was."""
    if card.virtualization is not None or card.address not in known:
        return card
    return replace(card, virtualization=known[card.address].virtualization)


def _lost(card: Card, inventory: Inventory) -> Card:
    text = inventory.unusable.get(card.address, "gone from the PCI bus")
    return _unreadable(card, "lost", text)


def _silent(card: Card, reason: str) -> Card:
    return _unreadable(card, "efsmi", f"efsmi does not answer for it: {reason}")


def _unreadable(card: Card, value: str, text: str) -> Card:
    """The card as it was when it could be read last, and why it cannot be read."""
    kept = tuple(each for each in card.problems if each.value not in {"lost", "efsmi"})
    return replace(card, problems=(*kept, Problem(TAINT_UNHEALTHY, value, text)))
