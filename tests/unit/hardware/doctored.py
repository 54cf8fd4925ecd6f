"""A simulated machine whose efsmi answers in this process, and lies where a test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed
from dra_driver.hardware.known_nodes import KnownNodes
from dra_driver.hardware.machine import SILENT, HardwareScan, Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.effects import Effects
from dra_driver.model.errors import HardwareError
from dra_driver.simulator.machine import SimulatedMachine

Edit = Callable[[str], str]

# Version 1.2 in all that can be told apart.
OLD_TOOL = {
    "header": "DEV",
    "banner": False,
    "json": False,
    "keys": "old",
    "vendorInName": False,
    "temperatureUnit": "C",
    "instanceRows": False,
}


_NEVER_OVER = 3600.0


class DoctoredEfsmi(Efsmi):
    """Answers with what the simulated tool prints; `edits` change that of a call, named by its
    arguments in one string (``""`` is the summary), and may raise. `calls` are all made so far."""

    def __init__(self, simulated: SimulatedMachine, edits: Mapping[str, Edit]) -> None:
        super().__init__(simulated.efsmi_path, timeout=_NEVER_OVER, effects=Effects())
        self._simulated = simulated
        self._edits = edits
        self.calls: list[str] = []

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        call = " ".join(arguments)
        self.calls.append(call)
        answer = self._simulated.efsmi(*arguments)
        if answer.exit_code:
            shown = " ".join(["efsmi", *arguments])
            told = f"`{shown}` ended with {answer.exit_code}: {answer.stderr.strip()}"
            raise EfsmiFailed(told)
        text = answer.stdout.decode("utf-8", "replace")
        return self._edits[call](text) if call in self._edits else text


def reader(simulated: SimulatedMachine, efsmi: Efsmi | None = None) -> Machine:
    """The driver's view of the machine, with a state directory beside it."""
    known_nodes = KnownNodes(simulated.root.parent / "state")
    efsmi = efsmi or DoctoredEfsmi(simulated, {})
    return Machine(Sysfs(simulated.root), efsmi, known_nodes=known_nodes)


def inventory(simulated: SimulatedMachine, edits: Mapping[str, Edit] | None = None) -> HardwareScan:
    """What the driver sees of the machine."""
    return reader(simulated, DoctoredEfsmi(simulated, edits or {})).inventory()


def simulated(root: Path, source: str | dict[str, Any] = "s60-4") -> SimulatedMachine:
    """A machine below `root`, device nodes as plain files."""
    return SimulatedMachine.create(source, root / "machine", plain_device_files=True)


def three(root: Path, card: dict[str, Any] | None = None, **keys: Any) -> SimulatedMachine:
    """Cards 0000:0d:00.0, 0000:0e:00.0 and 0000:0f:00.0; the first has index 2, the last 0."""
    cards = [
        {"bdf": f"0000:{0x0D + at:02x}:00.0", "model": "S60", "index": 2 - at, **(card or {})}
        for at in range(3)
    ]
    return simulated(root, {"cards": cards, **keys})


def unbind(simulated: SimulatedMachine, address: str) -> None:
    """The kernel driver does not hold the card."""
    folder = (simulated.root / f"sys/bus/pci/devices/{address}/enflame").resolve()
    folder.rename(folder.with_name("gone"))


def addresses(found: HardwareScan) -> list[str]:
    return [str(card.address) for card in found.cards]


def reasons(found: HardwareScan) -> dict[str, str]:
    """Of the cards for which efsmi does answer."""
    failures = found.failures.items()
    return {str(at): str(error) for at, error in failures if not isinstance(error, SILENT)}


def silent(found: HardwareScan, *, kind: type[HardwareError] | None = None) -> dict[str, str]:
    """Why efsmi does not answer for a card, by address; of this `kind` of errors alone."""
    failures = found.failures.items()
    return {str(at): str(error) for at, error in failures if isinstance(error, kind or SILENT)}
