"""Calls of ``efsmi``, the vendor's management tool: argv only, bounded in time."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from dra_driver.hardware.shown import last_line
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import HardwareError

logger = logging.getLogger(__name__)

_GRACE = 1.0  # seconds for a killed tool to be gone

Measured = Callable[[str, str, float], None]
"""Is told of each call: the command in a word, how it ended (ok, failed, hung, or error where the
tool could not be run), and the seconds that it took."""

_COMMANDS: Final = {"-L": "list", "-q": "query", "on": "drs-on", "off": "drs-off"}


class EfsmiFailed(HardwareError):
    """``efsmi`` ran to its end and reported failure; ``exit_code`` is below 0 after a signal."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(what)
        self.exit_code = exit_code


class EfsmiHung(HardwareError):
    """``efsmi`` did not end within its limit; what it changed is unknown."""


class Efsmi:
    """Runs the tool at `path` and gives back what it printed.

    `timeout` is in seconds and holds for each call. The tool is never given a shell, and its
    output is decoded with replacement, since tables carry ``℃`` and serial numbers are raw.
    What it had printed before it was killed or failed is told in the error and never given back:
    a table that was cut off looks like one with fewer cards. A call that not even a kill ends is
    not repeated while it lasts: processes would pile up behind a card that hangs.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout: float,
        effects: Effects,
        measured: Measured = lambda _command, _outcome, _seconds: None,
    ) -> None:
        self._path = path
        self.timeout = timeout
        self._effects = effects
        self._measured = measured
        self._stuck: dict[tuple[str, ...], subprocess.Popen[bytes]] = {}

    def list_cards(self, index: int | None = None) -> str:
        """``efsmi -L``: index, serial, PCI address and uuid of each card, or of one."""
        return self.run(*_of(index), "-L")

    def query(self, index: int | None = None) -> str:
        """``efsmi -q``: everything about each card, or one, as blocks of ``key : value``."""
        return self.run(*_of(index), "-q")

    def query_json(self, index: int | None = None) -> str:
        """``efsmi -q --json-format``: the same as JSON; EfsmiFailed from tools too old for it."""
        return self.run(*_of(index), "-q", "--json-format")

    def summary(self) -> str:
        """Plain ``efsmi``: the only place that tells the virtualisation mode."""
        return self.run()

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        """Standard output of one call, which keeps the file descriptors `inherit` open for as
        long as it lives.

        Raises EfsmiHung, EfsmiFailed, or HardwareError where the tool cannot be run.
        """
        begun, outcome = time.monotonic(), "error"
        try:
            output = self._run(arguments, inherit)
            outcome = "ok"
        except EfsmiFailed:
            outcome = "failed"
            raise
        except EfsmiHung:
            outcome = "hung"
            raise
        finally:
            self._measured(_command(arguments), outcome, time.monotonic() - begun)
        return output

    def _run(self, arguments: tuple[str, ...], inherit: Sequence[int]) -> str:
        argv = [str(self._path), *arguments]
        call = " ".join(["efsmi", *arguments])
        self._check_not_stuck(arguments, call)
        try:
            with self._effects(Point.EFSMI_CALL):
                done = self._execute(argv, arguments, inherit)
        except subprocess.TimeoutExpired as error:
            said = last_line(_decoded(error.stdout)) or last_line(_decoded(error.stderr))
            raise EfsmiHung(
                f"`{call}` did not end within {self.timeout:g} s"
                + (f" (it had printed: {said})" if said else ""),
                remedy="look at the kernel log for a card that hangs, or give efsmi more time "
                "(the chart's efsmi.timeout)",
            ) from error
        except OSError as error:
            raise HardwareError(
                f"{self._path} cannot be run: {error.strerror or error}",
                remedy="set the chart's efsmi.path, or efsmi.runtimeClassName where the vendor's "
                "runtime provides it",
            ) from error
        output = _decoded(done.stdout)
        if done.returncode != 0:
            said = last_line(_decoded(done.stderr)) or last_line(output)
            end = f"ended with {done.returncode}"
            if done.returncode < 0:
                end = f"was killed by signal {-done.returncode}"
            raise EfsmiFailed(f"`{call}` {end}: {said or 'no output'}", done.returncode)
        logger.debug("%s printed %d bytes", call, len(done.stdout))
        return output

    def _execute(
        self, argv: Sequence[str], arguments: tuple[str, ...], inherit: Sequence[int]
    ) -> subprocess.CompletedProcess[bytes]:
        """Like ``subprocess.run``, but returns after the timeout even when the tool sits in an
        uninterruptible call of the kernel driver, where a kill takes effect only later."""
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            pass_fds=tuple(inherit),
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                error.stdout, error.stderr = process.communicate(timeout=_GRACE)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            if process.poll() is None:
                self._stuck[arguments] = process
            raise
        return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)

    def _check_not_stuck(self, arguments: tuple[str, ...], call: str) -> None:
        earlier = self._stuck.pop(arguments, None)
        if earlier is not None and earlier.poll() is None:
            self._stuck[arguments] = earlier
            raise EfsmiHung(
                f"an earlier `{call}` has not ended although it was killed",
                remedy="look at the kernel log for a card that hangs; the node may need a reboot",
            )


def _of(index: int | None) -> tuple[str, ...]:
    return () if index is None else ("-i", str(index))


def _command(arguments: Sequence[str]) -> str:
    """The call in a word, whichever card it is of: the simulator's names."""
    words = arguments[2:] if arguments[:1] == ("-i",) else arguments
    words = words[1:] if words[:1] == ("--drs",) else words
    word = words[0] if words else "summary"
    return _COMMANDS.get(word, word.removeprefix("--"))


def _decoded(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace")
