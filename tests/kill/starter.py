"""The tests' side of `agent_process`: starts agents, and sees how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.descriptors import readable

_CHECKOUT = Path(__file__).parents[2]
_END_SECONDS = 30.0


class AgentProcess:
    """A running agent, or one that has ended."""

    def __init__(self, pid: int, folder: Path, name: str) -> None:
        self.order = folder / f"{name}.order"
        self._trace = folder / f"{name}.trace"
        try:
            # Refers to this very process for ever, which its number does not.
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = -1

    def trace(self) -> list[str]:
        """The moments that it has passed."""
        return self._trace.read_text().splitlines() if self._trace.exists() else []

    def ended(self, timeout: float = 0.0) -> bool:
        """Whether it has ended, after at most `timeout` seconds."""
        if self._pidfd >= 0 and readable(self._pidfd, within=timeout):
            os.close(self._pidfd)
            self._pidfd = -1
        return self._pidfd < 0

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, and return when it has ended."""
        if not self.ended():
            signal.pidfd_send_signal(self._pidfd, number)
        assert self.ended(_END_SECONDS), f"{number.name} does not end the agent"


class Starter:
    """Starts agents; `close` ends them all. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kill.agent_process"],
            cwd=_CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, folder: Path, name: str, argv: Sequence[str]) -> AgentProcess:
        """An agent that logs to ``agent.log`` in `folder`; `name` is new to that folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._mutex:
            order = {"folder": str(folder), "name": name, "argv": list(argv)}
            self._process.stdin.write(f"{json.dumps(order)}\n")
            self._process.stdin.flush()
            return AgentProcess(int(self._process.stdout.readline()), folder, name)

    def close(self) -> None:
        self._process.communicate(timeout=_END_SECONDS)
