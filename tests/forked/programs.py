"""The tests' side of `server`: starts programs, and sees how they end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

_CHECKOUT = Path(__file__).parents[2]
_START_SECONDS = 60.0
MEMORY: Final = {
    "MALLOC_ARENA_MAX": "2",
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072",
}
"""Variables of the image, by which the controller takes less memory. malloc reads them when a
process executes its program, so forks have what the server began with."""


class Program:
    """A running program, or one that has ended; as `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None
        self._ended = threading.Event()

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative where a signal ended it. Raises TimeoutExpired after `timeout`
        seconds."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        assert self._code is not None
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing where it has ended."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end_with(self, code: int) -> None:
        """What the server says."""
        self._code = code
        self._ended.set()


class Programs:
    """Programs of one server; they end when this process does. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._running: dict[int, Program] = {}
        self._started: queue.SimpleQueue[Program] = queue.SimpleQueue()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked.server"],
            cwd=_CHECKOUT,
            env={**os.environ, **MEMORY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._server.stdout is not None
        threading.Thread(target=self._listen, args=(self._server.stdout,), daemon=True).start()

    @staticmethod
    @cache
    def shared() -> Programs:
        """Those of this process."""
        return Programs()

    def start(self, module: str, argv: Sequence[str], log: Path) -> Program:
        """``python -m <module> <argv>``, begun; its output is added to `log`."""
        log.touch()  # a program is looked at before it has written anything
        order = {"module": module, "argv": list(argv), "log": str(log)}
        assert self._server.stdin is not None
        with self._mutex:
            self._server.stdin.write(f"{json.dumps(order)}\n")
            self._server.stdin.flush()
            return self._started.get(timeout=_START_SECONDS)

    def _listen(self, output: IO[str]) -> None:
        for line in output:
            match line.split():
                case ["started", pid]:
                    program = self._running[int(pid)] = Program(int(pid))
                    self._started.put(program)
                case ["ended", pid, code]:
                    self._running.pop(int(pid)).end_with(int(code))
