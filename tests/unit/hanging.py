"""Calls of efsmi that hang, without a time that decides which do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from dra_driver.hardware import efsmi
from dra_driver.simulator.machine import SimulatedMachine

_POLL = 0.01
_KILLED = 60.0


def time_is_up_when(
    monkeypatch: pytest.MonkeyPatch, hangs: Callable[[int], bool], *, grace: float = _KILLED
) -> None:
    """The limit of a call is over as soon as `hangs` says so of its process, and not before, so
    that a busy machine makes no call hang. `grace` is what a killed one has, in seconds."""

    class Process(subprocess.Popen[bytes]):
        _is_over = False

        def communicate(
            self,
            input: bytes | None = None,  # noqa: A002 (as upstream names it)
            timeout: float | None = None,
        ) -> tuple[bytes, bytes]:
            while not self._is_over:
                try:
                    return super().communicate(input, timeout=_POLL)
                except subprocess.TimeoutExpired:
                    self._is_over = hangs(self.pid)
                    if self._is_over:
                        raise
            return super().communicate(input, timeout=timeout)

    monkeypatch.setattr(efsmi, "_GRACE", grace)
    monkeypatch.setattr(subprocess, "Popen", Process)


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
