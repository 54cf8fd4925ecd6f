"""One of our programs as a process of its own, as a pod would run it."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.processes import is_stopped
from tests.cluster.waiting import PATIENCE, wait_until
from tests.forked.programs import Program, Programs


class ProgramProcess:
    """``python -m <module>``, started at once; it logs to the file, and to the end of it where
    there is one already."""

    def __init__(self, module: str, log: Path, *flags: str) -> None:
        self._log = log
        self._process = self._begin(module, flags)

    def _begin(self, module: str, flags: Sequence[str]) -> Program | subprocess.Popen[bytes]:
        return Programs.shared().start(module, flags, self._log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def log(self) -> str:
        return self._log.read_text()

    def wait_for_log(self, text: str, timeout: float = PATIENCE) -> None:
        """Return when a line of the log has `text`."""
        wait_until(lambda: text in self.log(), timeout, f"{text!r} in the log", seen=self.log)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait_stopped(self, timeout: float = PATIENCE) -> None:
        """Return when the process is stopped, by itself or by another."""
        pid = self._process.pid
        wait_until(lambda: is_stopped(pid), timeout, "the program stopped", seen=self.log)

    def suspend(self) -> None:
        """SIGSTOP; returns when it does nothing more."""
        self.signal(signal.SIGSTOP)
        self.wait_stopped()

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        """SIGKILL: it leaves everything as it is."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self._process.wait(PATIENCE)

    def end(self) -> None:
        """Make sure that nothing is left of it; asked first, it leaves in order."""
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)  # a stopped one would not hear
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(PATIENCE)

    def probe(self, path: str) -> tuple[int, str]:
        """Status and body of an HTTP path of its probe server."""
        found = re.findall(r"probes on port (\d+)", self.log())
        assert found
        try:
            url = f"http://127.0.0.1:{found[-1]}{path}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
