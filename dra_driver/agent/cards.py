"""The node's cards as last seen, kept fresh by a thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from dra_driver.agent.reports import CARD_BACK, CARD_LOST, CARD_UNUSABLE, Reports
from dra_driver.hardware.machine import Inventory, Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.kube.backoff import Backoff
from dra_driver.model.card import Card, Problem
from dra_driver.model.errors import HardwareError
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress

logger = logging.getLogger(__name__)


class Cards:
    """Looks at the machine at an interval and when the PCI bus has changed.

    A failed look keeps what was seen before: that the machine cannot be read says nothing
    about its cards. It is repeated sooner than at the next interval, but not at every look at
    the bus, as a tool that hangs should not be called all the time. A card that was seen and is
    no longer found stays, with the problem ``lost``, until it is back or the agent starts anew.
    """

    def __init__(
        self,
        machine: Machine,
        sysfs: Sysfs,
        *,
        presence_interval: float,
        inventory_interval: float,
        changed: Callable[[], None],
        reports: Reports,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._machine = machine
        self._sysfs = sysfs
        self._presence_interval = presence_interval
        self._inventory_interval = inventory_interval
        self._changed = changed
        self._reports = reports
        self._clock = clock
        self._cards: dict[PciAddress, Card] | None = None
        self._unusable: dict[PciAddress, str] = {}
        self._foreign: Mapping[PciAddress, Problem] = {}
        self._bus: object = None
        self._backoff = Backoff(first=presence_interval, longest=inventory_interval)
        self._due = float("-inf")
        self._looked = float("-inf")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cards", daemon=True)
        self.problem: str | None = "the hardware has not been read yet"

    @property
    def latest(self) -> tuple[Card, ...] | None:
        """All cards by address; None until a look succeeded."""
        cards = self._cards
        return None if cards is None else tuple(map(self._with_foreign, cards.values()))

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
        self.look()
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, timeout: float) -> None:
        """End the thread; a look that takes longer than `timeout` seconds is not waited for."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def look(self) -> None:
        """A full look now. Never raises: what went wrong is told in `problem`."""
        before = self._cards
        try:
            self._bus = self._sysfs.functions()
            inventory = self._machine.inventory()
        except HardwareError as error:
            if self.problem != str(error):
                logger.warning("the hardware cannot be read: %s", error)
            self.problem = str(error)
            self._due = self._clock() + self._backoff.next()
            return
        self._backoff.reset()
        self._looked = self._clock()
        self._due = self._looked + self._inventory_interval
        self._take(inventory)
        self.problem = None
        if self._cards != before:
            self._changed()

    def tick(self) -> None:
        """Look if it is time, or if the PCI bus is not as it was."""
        if self._clock() >= self._due or self._bus_changed():
            self.look()

    def _bus_changed(self) -> bool:
        try:
            return self._sysfs.functions() != self._bus
        except HardwareError as error:
            logger.debug("the PCI bus cannot be read: %s", error)
            return True

    def _take(self, inventory: Inventory) -> None:
        known = self._cards or {}
        found = {card.address: card for card in inventory.cards}
        missing = {a: _lost(card, inventory) for a, card in known.items() if a not in found}
        lost_before = {address for address, card in known.items() if _is_lost(card)}
        for address in sorted(missing.keys() - lost_before):
            text = missing[address].problems[-1].text
            logger.warning("card %s: %s", address, text)
            self._reports.warning(CARD_LOST, f"card {address}: {text}")
        for address in sorted(lost_before & found.keys()):
            logger.info("card %s is back", address)
            self._reports.normal(CARD_BACK, f"card {address} is back")
        for address, reason in inventory.unusable.items():
            if address not in known and self._unusable.get(address) != reason:
                logger.warning("card %s is not published: %s", address, reason)
                note = f"card {address} is not published: {reason}"
                self._reports.warning(CARD_UNUSABLE, note)
        self._unusable = dict(inventory.unusable)
        self._cards = dict(sorted((found | missing).items()))

    def _with_foreign(self, card: Card) -> Card:
        problem = self._foreign.get(card.address)
        return card if problem is None else replace(card, problems=(*card.problems, problem))

    def _run(self) -> None:
        while not self._stop.wait(self._presence_interval):
            self.tick()


def _lost(card: Card, inventory: Inventory) -> Card:
    text = inventory.unusable.get(card.address, "gone from the PCI bus")
    kept = tuple(problem for problem in card.problems if problem.value != "lost")
    return replace(card, problems=(*kept, Problem(TAINT_UNHEALTHY, "lost", text)))


def _is_lost(card: Card) -> bool:
    return any(problem.value == "lost" for problem in card.problems)
