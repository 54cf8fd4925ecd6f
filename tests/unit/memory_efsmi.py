"""The simulator's ``efsmi`` without processes and files: the same commands on a machine in memory.

`dra_driver.simulator.efsmi` does what `MemoryEfsmi.run` does, on a machine on disk; a call here
takes 50 µs rather than 35 ms, which thousands of random sequences need.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.model.effects import Effects, Point
from dra_driver.simulator import faults
from dra_driver.simulator.boot import rebooted
from dra_driver.simulator.commands.command import UsageError, parse
from dra_driver.simulator.commands.operations import Effect, perform
from dra_driver.simulator.description.load import machine_spec, validated
from dra_driver.simulator.description.resolve import fault_state, first_state
from dra_driver.simulator.description.spec import FaultSpec
from dra_driver.simulator.state import CardState, InstanceState, MachineState

S60 = {"model": "S60"}


class MemoryEfsmi(Efsmi):
    """`machine` is the truth, `calls` all arguments, `refusals` the commands that the machine
    itself refused, with its words."""

    def __init__(self, machine: MachineState, effects: Effects | None = None) -> None:
        self.effects = effects or Effects()
        super().__init__(Path("efsmi"), timeout=0.0, effects=self.effects)
        self.machine = machine
        self.calls: list[tuple[str, ...]] = []
        self.refusals: list[tuple[str, str]] = []
        self._mutex = threading.Lock()

    @classmethod
    def of(cls, *bdfs: str, card: Mapping[str, Any] | None = None, **keys: Any) -> MemoryEfsmi:
        """A machine of S60 with ECC; `card` has more keys of each, `keys` of the machine. Indexes
        run against the order of addresses."""
        last = len(bdfs) - 1
        described = [
            {"bdf": bdf, "index": last - at, **S60, **(card or {})} for at, bdf in enumerate(bdfs)
        ]
        return cls(first_state(machine_spec({"cards": described, **keys}), identity=""))

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        """As the real one: what a process would print, or how it would end."""
        self.calls.append(arguments)
        with self.effects(Point.EFSMI_CALL), self._mutex:
            effect = self._effect(arguments)
        if effect.exit_code:
            raise EfsmiFailed(effect.error)
        return effect.out.decode("utf-8", "replace")

    def set_fault(self, fault: str, **keys: Any) -> None:
        spec = validated(FaultSpec, {"fault": fault, **keys}, of="the fault")
        machine = self.machine
        self.machine = machine._replace(faults=(*machine.faults, fault_state(machine, spec)))

    def clear_faults(self) -> None:
        self.machine = self.machine._replace(faults=())

    def card(self, bdf: str) -> CardState:
        return self.machine.card(bdf)

    def set_card(self, bdf: str, **keys: Any) -> None:
        """Set attributes of a card's state (``lost``, ``instances``, ``virtualization``)."""
        self.machine = self.machine.with_card(self.card(bdf)._replace(**keys))

    def reboot(self) -> None:
        self.machine = rebooted(self.machine, ())

    def instances(self, bdf: str) -> tuple[InstanceState, ...]:
        return self.card(bdf).instances

    def changes(self) -> list[str]:
        """The calls that were to change something, as ``<index> <what>``."""
        return [
            f"{call[1]} {' '.join(call[3:]).removeprefix('--')}"
            for call in self.calls
            if len(call) > 3 and call[3] not in {"--list-instance", "--list-profile"}
        ]

    def _effect(self, arguments: Sequence[str]) -> Effect:
        try:
            command = parse(arguments)
            index = command.card_index
            bdf = next((c.bdf for c in self.machine.present if c.efsmi_index == index), None)
            self.machine, met = faults.strike(self.machine, command.name, bdf)
            if faults.seconds(met) >= faults.HANG_SECONDS:
                raise EfsmiHung(f"{command.name} hangs")
            effect = perform(self.machine, command, met, 0.0)
            if effect.exit_code and not met:
                self.refusals.append((command.name, effect.error))
        except UsageError as error:
            return Effect(self.machine, "usage", error=str(error), exit_code=2)
        self.machine = effect.machine
        if faults.CREATE_HANGS_AFTER_MAKING in met:
            raise EfsmiHung(f"{command.name} hangs")
        return effect
