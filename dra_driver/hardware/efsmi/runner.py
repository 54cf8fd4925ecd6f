"""Calls of ``efsmi``, the vendor's management tool: argv only, bounded in time and in output."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from dra_driver.hardware.efsmi.field_reader import last_line
from dra_driver.hardware.vendor_files import library_folder
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import HardwareError

logger = logging.getLogger(__name__)

_GRACE = 1.0  # seconds for a killed tool to be gone
_LOOK_EVERY: Final = 0.005  # seconds; the kernel reports the end of a process group to nobody
# Some thirty times what a node full of cards prints. Parsing takes up to 40 times the memory of the
# text (a JSON of empty lists), which the agent's memory limit must hold.
_OUTPUT_LIMIT: Final = 2 << 20  # bytes of standard output and error together
_CHUNK: Final = 64 * 1024

Printed = dict[IO[bytes], bytearray]
"""What was read so far, by pipe: of standard output, then of error."""

Measured = Callable[[str, str, float], None]
"""Is told of each call: the command in a word, how it ended (ok, failed, hung, or error where the
tool could not be run), and the seconds that it took."""

_SEARCH_PATH: Final = "LD_LIBRARY_PATH"
_COMMANDS: Final = {"-L": "list", "-q": "query", "on": "drs-on", "off": "drs-off"}


class EfsmiFailed(HardwareError):
    """``efsmi`` reported failure, or was killed as it printed without end."""

    outcome: Final = "failed"


class EfsmiHung(HardwareError):
    """``efsmi`` did not end within its limit; what it changed is unknown."""

    outcome: Final = "hung"


@dataclass(eq=False)
class Efsmi:
    """Runs the tool at `path` and gives back what it printed.

    `timeout` is in seconds and holds for each call. The tool is never given a shell, and its
    output is decoded with replacement, since tables carry ``℃`` and serial numbers are raw.
    A tool that prints without end is killed at `_OUTPUT_LIMIT`.
    What it had printed before it was killed or failed is told in the error and never given back:
    a table that was cut off looks like one with fewer cards. What a call leaves running in its
    process group is killed, however it ended: it would keep the descriptors that were inherited,
    and with them a card's lock. A call that not even a kill ends is not repeated while it lasts:
    processes would pile up behind a card that hangs. Each call finds the vendor's `library` by
    LD_LIBRARY_PATH; without one, as the system does.
    """

    path: Path
    _: KW_ONLY
    timeout: float
    effects: Effects
    library: Path | None = None
    measured: Measured = lambda _command, _outcome, _seconds: None
    _stuck: dict[tuple[str, ...], subprocess.Popen[bytes]] = field(init=False, default_factory=dict)

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        """Standard output of one call, which keeps the file descriptors `inherit` open for as
        long as it lives.

        Raises EfsmiHung, EfsmiFailed, or HardwareError where the tool cannot be run.
        """
        begun, outcome = time.monotonic(), "error"
        try:
            output = self._run(arguments, inherit)
            outcome = "ok"
        except (EfsmiFailed, EfsmiHung) as error:
            outcome = error.outcome
            raise
        finally:
            self.measured(_command(arguments), outcome, time.monotonic() - begun)
        return output

    def _run(self, arguments: tuple[str, ...], inherit: Sequence[int]) -> str:
        call = " ".join(["efsmi", *arguments])
        self._check_not_stuck(arguments, call)
        try:
            with self.effects(Point.EFSMI_CALL):
                code, output, errors = self._execute(call, arguments, inherit)
        except OSError as error:
            raise HardwareError(
                f"{self.path} cannot be run: {error.strerror or error}",
                remedy="set the chart's efsmi.path, or efsmi.runtimeClassName where the vendor's "
                "runtime provides it",
            ) from error
        if code != 0:
            end = f"ended with {code}" if code > 0 else f"was killed by signal {-code}"
            said = last_line(errors) or last_line(output) or "no output"
            raise EfsmiFailed(f"`{call}` {end}: {said}")
        logger.debug("%s printed %d characters", call, len(output))
        return output

    def _execute(
        self, call: str, arguments: tuple[str, ...], inherit: Sequence[int]
    ) -> tuple[int, str, str]:
        """The exit code, standard output and error. Unlike ``subprocess.run`` it returns after the
        timeout even when the tool sits in an uninterruptible call of the kernel driver, where a
        kill takes effect only later."""
        process = subprocess.Popen(
            [str(self.path), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            pass_fds=tuple(inherit),
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        printed: Printed = {process.stdout: bytearray(), process.stderr: bytearray()}
        try:
            _finish(call, process, printed, self.timeout)
        except subprocess.TimeoutExpired as error:
            said = next(filter(None, map(last_line, _texts(printed))), "")
            raise EfsmiHung(
                f"`{call}` did not end within {self.timeout:g} s"
                + (f" (it had printed: {said})" if said else ""),
                remedy="look at the kernel log for a card that hangs, or give efsmi more time "
                "(the chart's efsmi.timeout)",
            ) from error
        finally:
            for pipe in printed:
                pipe.close()
            if not _ends(process):
                self._stuck[arguments] = process
        return process.returncode, *_texts(printed)

    @cached_property
    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        if self.library is not None:
            inherited = environment.get(_SEARCH_PATH)
            first = str(library_folder(self.library))
            environment[_SEARCH_PATH] = f"{first}:{inherited}" if inherited else first
        return environment

    def _check_not_stuck(self, arguments: tuple[str, ...], call: str) -> None:
        earlier = self._stuck.pop(arguments, None)
        if earlier is not None and not _is_gone(earlier):
            self._stuck[arguments] = earlier
            raise EfsmiHung(
                f"an earlier `{call}` has not ended although it was killed",
                remedy="look at the kernel log for a card that hangs; the node may need a reboot",
            )


def _finish(call: str, process: subprocess.Popen[bytes], printed: Printed, within: float) -> None:
    """Read until the output and the process have ended. Raises subprocess.TimeoutExpired after
    `within` seconds, and EfsmiFailed for too much output; then the process still runs.

    ``Popen.communicate`` keeps all that it reads, so a program that never stops printing would take
    the memory of the one that started it.
    """
    end = time.monotonic() + within
    with selectors.PollSelector() as selector:
        for pipe, kept in printed.items():
            selector.register(pipe, selectors.EVENT_READ, kept)
        while selector.get_map():
            for key, _ in selector.select(max(end - time.monotonic(), 0)):
                chunk = os.read(key.fd, _CHUNK)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            if sum(map(len, printed.values())) > _OUTPUT_LIMIT:
                raise EfsmiFailed(
                    f"`{call}` printed more than {_OUTPUT_LIMIT >> 20} MiB and was killed",
                    remedy="run it on the node to see what it prints; reinstall the vendor's "
                    "driver, or set the chart's efsmi.path if it is not the vendor's tool",
                )
            # Also while there is something to read, as a program may print slowly for ever.
            if selector.get_map() and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(process.args, within)
    _wait(process, max(end - time.monotonic(), 0))


def _wait(process: subprocess.Popen[bytes], within: float) -> None:
    """As `Popen.wait`, which looks after pauses of a millisecond and ever more: here the kernel
    says when the process has ended."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # a Python, a kernel (5.3) or a sandbox without that call
        process.wait(within)
        return
    try:
        with selectors.PollSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.select(within)
    finally:
        os.close(descriptor)
    process.wait(0)


def _ends(process: subprocess.Popen[bytes]) -> bool:
    """Kill what is left of the call's process group; whether it is gone within `_GRACE`."""
    end = time.monotonic() + _GRACE
    while not _is_gone(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if time.monotonic() >= end:
            return False
        # Only children can be waited for, and what is left may be a grandchild's.
        time.sleep(_LOOK_EVERY)
    return True


def _is_gone(process: subprocess.Popen[bytes]) -> bool:
    """Whether nothing of the call's process group runs. Its dead are taken, too: the agent is
    process 1 of its container, to which they come when the tool ends before them."""
    if process.poll() is None:
        return False
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-process.pid, os.WNOHANG) != (0, 0):
            pass
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def _command(arguments: Sequence[str]) -> str:
    """The call in a word, whichever card it is of: the simulator's names."""
    words = arguments[2:] if arguments[:1] == ("-i",) else arguments
    words = words[1:] if words[:1] == ("--drs",) else words
    word = words[0] if words else "summary"
    return _COMMANDS.get(word, word.removeprefix("--"))


def _texts(printed: Printed) -> tuple[str, str]:
    output, errors = (text.decode("utf-8", "replace") for text in printed.values())
    return output, errors
