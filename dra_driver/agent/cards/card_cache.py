"""The node's cards as they were last read, and the thread that reads them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.efsmi.join import EfsmiUnclear
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.hardware.machine import SILENT, HardwareScan, Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.card import NO_READINGS, Card, Cards, Problem
from dra_driver.model.errors import HardwareError
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.util.background import Background
from dra_driver.util.backoff import Backoff
from dra_driver.util.hooks import Clock, OnChange

logger = logging.getLogger(__name__)

_TOLERATED_FAILURES: Final = 3  # in a row; from then on the cards are tainted


@dataclass(eq=False)
class CardCache(Background):
    """Takes an inventory of the machine at an interval, and when the PCI bus has changed.

    If an inventory fails, the cards stay as they were: the failure says nothing about them. It is
    repeated with a back-off, sooner than the interval, but not at every check of the bus, because
    a tool that hangs should not be called all the time. A card that disappears stays, with the
    problem ``lost``, until it is back or the agent restarts. A card for which efsmi does not
    answer, or gives an answer that is not understood, stays as it was, with the problem ``efsmi``.
    """

    machine: Machine
    sysfs: Sysfs
    _: KW_ONLY
    presence_interval: float
    inventory_interval: float
    breaker: HungCardBreaker
    on_change: OnChange
    card_events: CardEvents
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        super().__init__("cards")
        self._cards: dict[PciAddress, Card] | None = None
        self.unusable: Mapping[PciAddress, str] = {}
        """Why cards that sysfs or efsmi knows are not among the `latest`."""
        self.unread: frozenset[PciAddress] = frozenset()
        """Cards on the bus that efsmi has not described since the agent's start. They may be well:
        efsmi does not answer for them, or its answer is not understood."""
        self._foreign: Mapping[PciAddress, Problem] = {}
        self._bus: object = None
        self._backoff = Backoff(first=self.presence_interval, longest=self.inventory_interval)
        self._due = float("-inf")
        self._read_at = float("-inf")
        self._failures = 0
        self.problem: str | None = "the hardware has not been read yet"

    @property
    def latest(self) -> Cards | None:
        """All cards, in the order of their addresses; None until an inventory succeeded."""
        cards = self._cards
        return cards and {address: self._with_foreign(card) for address, card in cards.items()}

    @property
    def failing(self) -> Problem | None:
        """A problem of all cards while inventories have failed several times in a row."""
        if self._failures < _TOLERATED_FAILURES or self.problem is None:
            return None
        return Problem(TAINT_UNHEALTHY, "efsmi", self.problem)

    @property
    def age(self) -> float:
        """Seconds since the last inventory that succeeded; infinite before the first."""
        return self.clock() - self._read_at

    def card(self, address: PciAddress) -> Card:
        """The card with its present minor and device nodes; raises HardwareError."""
        known = (self._cards or {}).get(address)
        if known is None:
            reason = self.unusable.get(address) or self.problem
            raise HardwareError(
                f"this node has no usable card {address}" + (f": {reason}" if reason else "")
            )
        return self._with_foreign(self.machine.card(known))

    def is_on_bus(self, address: PciAddress) -> bool:
        """Whether the PCI bus has the card, whatever efsmi says of it."""
        with suppress(HardwareError):
            self.sysfs.minor(address)
            return True
        return False

    def index(self, address: PciAddress) -> int | None:
        """efsmi's index of the card at the last inventory; None for an unknown card."""
        known = (self._cards or {}).get(address)
        return None if known is None else known.index

    @property
    def foreign(self) -> Mapping[PciAddress, Problem]:
        """The cards that another program uses, each with the problem that says so."""
        return self._foreign

    @foreign.setter
    def foreign(self, found: Mapping[PciAddress, Problem]) -> None:
        if found != self._foreign:
            self._foreign = found
            self.on_change()

    def start(self) -> None:
        """Take an inventory, then continue in the thread. Never raises, as `refresh`."""
        self.refresh()
        super().start()

    def refresh(self) -> None:
        """Take an inventory now. Never raises: a failure is in `problem`."""
        before = self._cards, self.unread
        try:
            self._bus = self.sysfs.functions()
            inventory = self.machine.inventory()
        except HardwareError as error:
            if self.problem != str(error):
                logger.warning("the hardware cannot be read: %s", error)
            self.problem = str(error)
            if isinstance(error, EfsmiHung):
                self.breaker.on_hung(None, error)
            self._due = self.clock() + self._backoff.next()
            self._failures += 1
            if self._failures == _TOLERATED_FAILURES:
                self.on_change()
            return
        failures, self._failures = self._failures, 0
        self._backoff.reset()
        self._read_at = self.clock()
        self._due = self._read_at + self.inventory_interval
        self._update(inventory)
        for address, failure in inventory.failures.items():
            if isinstance(failure, EfsmiHung):
                self.breaker.on_hung(address, failure)
                # One card that hangs makes every call for all cards hang.
                self.breaker.on_hung(None, failure)
        self.problem = None
        if (self._cards, self.unread) != before or failures >= _TOLERATED_FAILURES:
            self.on_change()

    def tick(self) -> None:
        """Take an inventory if it is time, or if the PCI bus has changed."""
        if self.clock() >= self._due or self._bus_changed():
            self.refresh()

    def _bus_changed(self) -> bool:
        try:
            return self.sysfs.functions() != self._bus
        except HardwareError as error:
            logger.debug("the PCI bus cannot be read: %s", error)
            return True

    def _update(self, inventory: HardwareScan) -> None:
        known = self._cards or {}
        found = {card.address: _with_mode(card, known) for card in inventory.cards}
        failures = inventory.failures
        missing = {a: _unreadable(known[a], failures.get(a)) for a in known if a not in found}
        unusable = {a: error for a, error in failures.items() if a not in known}
        self.unusable = {a: str(error) for a, error in unusable.items()}
        self.unread = frozenset(
            a for a, error in unusable.items() if isinstance(error, (EfsmiUnclear, *SILENT))
        )
        self._cards = dict(sorted((found | missing).items()))
        self.card_events.emit(known, self._cards, self.unusable)

    def _with_foreign(self, card: Card) -> Card:
        problem = self._foreign.get(card.address)
        return card if problem is None else card.with_problem(problem)

    def run(self) -> None:
        while not self._wait(self.presence_interval):
            self.tick()


def _with_mode(card: Card, known: Mapping[PciAddress, Card]) -> Card:
    """While each card is queried separately efsmi does not show the mode: keep the known one."""
    if card.virtualization is not None or card.address not in known:
        return card
    return replace(card, virtualization=known[card.address].virtualization)


def _unreadable(card: Card, failure: HardwareError | None) -> Card:
    """The card as it was last read, with the reason why it cannot be read."""
    value = "efsmi" if isinstance(failure, (EfsmiUnclear, *SILENT)) else "lost"
    text = "gone from the PCI bus" if failure is None else str(failure)
    if isinstance(failure, SILENT):
        text = f"efsmi does not answer for it: {failure}"
    others = tuple(each for each in card.problems if each.value not in {"lost", "efsmi"})
    problems = (*others, Problem(TAINT_UNHEALTHY, value, text))
    return replace(card, problems=problems, readings=NO_READINGS)
