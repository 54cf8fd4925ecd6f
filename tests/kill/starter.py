"""Starts agents that die at one of their effects, and sees how they end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.forked.programs import Programs

_END_SECONDS = 30.0


class AgentProcess:
    """A `fatal_agent`, begun. It logs to ``agent.log`` in `folder`, to which `name` is new."""

    def __init__(self, folder: Path, name: str, argv: Sequence[str]) -> None:
        self.order = folder / f"{name}.order"
        self._trace = folder / f"{name}.trace"
        self._program = Programs.shared().start(
            "tests.kill.fatal_agent", [str(folder), name, *argv], folder / "agent.log"
        )

    def trace(self) -> list[str]:
        """The moments that it has passed."""
        return self._trace.read_text().splitlines() if self._trace.exists() else []

    def ended(self, timeout: float = 0.0) -> bool:
        """Whether it has ended, after at most `timeout` seconds."""
        try:
            self._program.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, and return when it has ended."""
        self._program.send_signal(number)
        assert self.ended(_END_SECONDS), f"{number.name} does not end the agent"
