"""The card cache of a simulated machine, looked at by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_events import CardEvents
from dra_driver.agent.events import EventReporter
from dra_driver.hardware.breaker import CardSilent, HungCardBreaker
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.hardware.known_nodes import KnownNodes
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.pci import PciAddress
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.agent.recorder import ListRecorder
from tests.unit.hardware.doctored import DoctoredEfsmi, Edit

COOLDOWN = 20.0
FIRST, SECOND = (PciAddress.parse(f"0000:{bus}:00.0") for bus in ("0d", "0e"))


def hangs(_: str) -> str:
    raise EfsmiHung("it did not end within 20 s")


class Watched:
    """Cards of a simulated machine of two S60, with a clock that only the test moves. A look at
    the bus comes every 5 s, a full one every 60 s."""

    def __init__(
        self,
        root: Path,
        *,
        cooldown: float = COOLDOWN,
        error_limit: int | None = None,
        **keys: Any,
    ) -> None:
        described = [{"bdf": str(address), "model": "S60"} for address in (FIRST, SECOND)]
        self.machine = SimulatedMachine.create(
            {"cards": described, **keys}, root, plain_device_files=True
        )
        self.edits: dict[str, Edit] = {}
        self.efsmi = DoctoredEfsmi(self.machine, self.edits)
        self.recorder = ListRecorder()
        self.changes = 0
        self.now = 0.0
        sysfs = Sysfs(root)
        self.breaker = HungCardBreaker(cooldown, clock=lambda: self.now)
        self.cards = CardCache(
            Machine(sysfs, self.efsmi, known_nodes=KnownNodes(root), error_limit=error_limit),
            sysfs,
            presence_interval=5.0,
            inventory_interval=60.0,
            breaker=self.breaker,
            on_change=self._changed,
            card_events=CardEvents(
                EventReporter(self.recorder, "n1"), simulated=True, clock=lambda: self.now
            ),
            clock=lambda: self.now,
        )

    def hang_second(self) -> None:
        """Calls for the second card do not end, nor those for all cards."""
        calls = ("-q --json-format", "-q", "-L", "", "-i 1 -q --json-format", "-i 1 -q")
        self.edits |= dict.fromkeys(calls, hangs)

    def problems(self) -> dict[str, list[str]]:
        """By address, the values of each card's problems."""
        return {
            str(card.address): [problem.value for problem in card.problems]
            for card in (self.cards.latest or {}).values()
        }

    def silent(self) -> list[PciAddress | None]:
        """The cards for which calls fail at once; None is for calls for all cards."""
        found: list[PciAddress | None] = []
        for card in (None, FIRST, SECOND):
            try:
                self.breaker.check(card)
            except CardSilent:
                found.append(card)
        return found

    def looks_in(self, seconds: int) -> int:
        """How many full looks there are in that time, with a tick every 5 s."""
        before = self.efsmi.calls.count("-q --json-format")
        for _ in range(0, seconds, 5):
            self.now += 5
            self.cards.tick()
        return self.efsmi.calls.count("-q --json-format") - before

    def _changed(self) -> None:
        self.changes += 1
