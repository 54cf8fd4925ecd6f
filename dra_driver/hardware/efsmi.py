"""Calls of ``efsmi``, the vendor's management tool: argv only, bounded in time."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dra_driver.hardware.shown import last_line
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import HardwareError

logger = logging.getLogger(__name__)

_GRACE = 1.0  # seconds for a killed tool to be gone


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
    a table that was cut off looks like one with fewer cards.
    """

    def __init__(self, path: Path, *, timeout: float, effects: Effects) -> None:
        self._path = path
        self._timeout = timeout
        self._effects = effects

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
        argv = [str(self._path), *arguments]
        call = " ".join(["efsmi", *arguments])
        try:
            with self._effects(Point.EFSMI_CALL):
                done = _execute(argv, self._timeout, inherit)
        except subprocess.TimeoutExpired as error:
            said = last_line(_decoded(error.stdout)) or last_line(_decoded(error.stderr))
            raise EfsmiHung(
                f"`{call}` did not end within {self._timeout:g} s"
                + (f" (it had printed: {said})" if said else ""),
                remedy="look at the kernel log for a card that hangs, or give efsmi more time "
                "(--efsmi-timeout)",
            ) from error
        except OSError as error:
            raise HardwareError(
                f"{self._path} cannot be run: {error.strerror or error}",
                remedy="set --efsmi-path, or let the vendor's runtime class bring it into the "
                "agent (Helm values efsmi.*)",
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


def _of(index: int | None) -> tuple[str, ...]:
    return () if index is None else ("-i", str(index))


def _execute(
    argv: Sequence[str], timeout: float, inherit: Sequence[int]
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
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            error.stdout, error.stderr = process.communicate(timeout=_GRACE)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        raise
    return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)


def _decoded(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace")
