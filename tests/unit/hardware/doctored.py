"""A simulated machine whose efsmi answers in this process, and lies where a test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dra_driver.hardware.efsmi import Efsmi, EfsmiFailed
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.effects import Effects
from dra_driver.model.errors import HardwareError
from dra_driver.simulator.machine import SimulatedMachine

Edit = Callable[[str], str]


class DoctoredEfsmi(Efsmi):
    """`edits` change the output of a call, by its arguments in one string (``""``: summary)."""

    def __init__(self, simulated: SimulatedMachine, **edits: Edit) -> None:
        super().__init__(simulated.efsmi_path, timeout=1, effects=Effects())
        self.simulated = simulated
        self.edits: dict[str, Edit | HardwareError] = dict(edits)
        self.calls: list[str] = []

    def _run(self, *arguments: str) -> str:
        call = " ".join(arguments)
        self.calls.append(call)
        answer = self.simulated.efsmi(*arguments)
        if answer.exit_code:
            raise EfsmiFailed(f"`efsmi {call}` failed: {answer.stderr}", answer.exit_code)
        edit = self.edits.get(call)
        if isinstance(edit, HardwareError):
            raise edit
        text = answer.stdout.decode("utf-8", "replace")
        return edit(text) if edit else text


def machine_of(efsmi: DoctoredEfsmi, root: Path | None = None) -> Machine:
    return Machine(Sysfs(root or efsmi.simulated.root), efsmi)
