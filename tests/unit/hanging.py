"""Calls of efsmi that hang, without a time that decides which do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from dra_driver.hardware.efsmi import runner as efsmi
from dra_driver.simulator.machine import SimulatedMachine

_POLL = 0.01
_KILLED = 60.0


def time_is_up_when(
    monkeypatch: pytest.MonkeyPatch, hangs: Callable[[int], bool], *, grace: float = _KILLED
) -> None:
    """The limit of a call is over as soon as `hangs` says so of its process, and not before, so
    that a busy machine makes no call hang. `grace` is what a killed one has, in seconds."""

    finish = efsmi._finish

    def polling(
        call: str, process: subprocess.Popen[bytes], printed: efsmi.Printed, _within: float
    ) -> None:
        while True:
            # Asked first, so that all is read that was printed by then.
            is_up = hangs(process.pid)
            try:
                return finish(call, process, printed, _POLL)
            except subprocess.TimeoutExpired:
                if is_up:
                    raise

    monkeypatch.setattr(efsmi, "_GRACE", grace)
    monkeypatch.setattr(efsmi, "_finish", polling)


def reads_that_hang(machine: SimulatedMachine) -> Callable[[int], bool]:
    """Calls whose faults make them wait: the record tells the beginning of no other that reads."""
    return lambda pid: any(
        entry.pid == pid and entry.event == "begin" and not entry.mutates
        for entry in machine.record()
    )


def first_create_once_made(machine: SimulatedMachine) -> Callable[[int], bool]:
    """The first call that makes an instance, as soon as that is there."""

    def hangs(pid: int) -> bool:
        made = [entry.pid for entry in machine.record() if "--create-instance" in entry.argv]
        return made[:1] == [pid] and bool(machine.instances())

    return hangs
