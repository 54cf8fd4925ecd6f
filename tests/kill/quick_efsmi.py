"""``efsmi`` of simulated machines, a process of its own for each call, as fast as a fork.

The simulator's own is a Python program: its start costs fifty times what the call does, and an
agent calls it many times in each kill. Here a call is a shell that asks this process, which has
imported everything, for a fork that answers on the shell's own streams. To an agent it is the same:
a process in a session of its own that ends what it began when the agent is killed, and keeps the
files that it was given open as long as it lives. But a kill of the shell does not reach the fork:
what hangs is tried with the simulator's own.

This process reads calls from the FIFO that its argument names, one a line: the shell's number, the
machine's folder, the arguments. When its parent dies, so does it, and its forks with it; shells,
which must outlive agents that call them, are then let go by a process that waits for that.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dra_driver.simulator.efsmi import main as answer

_CHECKOUT = Path(__file__).parents[2]
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_ERROR = 1

_POLL = 0.1  # seconds
_LATE = 20  # polls in which a shell that had begun before may come

# `read` waits for the fork, which writes the exit code when all else is done. The parentheses keep
# the shell's own streams as they are, as the fork may look at them at once. What is opened for
# reading, too, waits for nobody who reads it.
_CALLER = """\
#!/bin/sh
answer={calls}.$$
test -p {calls} && mkfifo "$answer" && (echo "$$ {root} $*" 1<>{calls}) && read -r code <"$answer"
exit "${{code:-{error}}}"
"""


class QuickEfsmi:
    """The process that forks; `close` ends it."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        os.mkfifo(self._calls)
        # What is written while nobody has it open is lost, and the other process has to start yet.
        self._open = os.open(self._calls, os.O_RDWR)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kill.quick_efsmi", self._calls, str(os.getpid())],
            cwd=_CHECKOUT,
        )

    def of(self, root: Path) -> Path:
        """An executable to call as the ``efsmi`` of the machine in `root`, which lies in there."""
        path = root / "bin" / "quick-efsmi"
        new = path.with_name("quick-efsmi.new")
        new.write_text(
            _CALLER.format(
                calls=shlex.quote(str(self._calls)), root=shlex.quote(str(root)), error=_ERROR
            )
        )
        new.chmod(0o755)
        new.replace(path)  # a shell may still read the one before
        return path

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._open)


def main(calls: Path, parent: int) -> None:
    _die_with(parent)
    gc.freeze()  # or a collection in a fork would copy it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    held = _let_go_at_the_end(calls)
    # Open for writing too, so that it never comes to its end.
    with os.fdopen(held), os.fdopen(os.open(calls, os.O_RDWR), "r") as lines:
        for line in iter(lines.readline, ""):
            number, root, *arguments = line.split()
            here = os.getpid()
            if os.fork() == 0:
                _die_with(here)
                _end(Path(f"{calls}.{number}"), _answered(int(number), root, arguments))


def _let_go_at_the_end(calls: Path) -> int:
    """Begin a process that ends the shells when this one and its forks are gone: when nobody has
    the descriptor any more that is given back."""
    end, held = os.pipe()
    if os.fork() == 0:
        os.setsid()  # not to be interrupted with the tests
        os.close(held)
        os.read(end, 1)
        calls.unlink(missing_ok=True)
        for _ in range(_LATE):
            _let_go(calls)
            time.sleep(_POLL)
        os._exit(0)
    os.close(end)
    return held


def _let_go(calls: Path) -> None:
    """A shell whose FIFO was opened, and closed without an answer, reads none; one that comes to it
    later finds no FIFO."""
    for answers in calls.parent.glob(f"{calls.name}.*"):
        with contextlib.suppress(OSError):  # nobody reads it
            os.close(os.open(answers, os.O_WRONLY | os.O_NONBLOCK))
        answers.unlink(missing_ok=True)


def _answered(caller: int, root: str, arguments: Sequence[str]) -> int:
    """Answer on the caller's streams; gives the exit code."""
    try:
        for stream in (1, 2):
            os.dup2(os.open(f"/proc/{caller}/fd/{stream}", os.O_WRONLY), stream)
        code = answer(root, arguments)
        sys.stderr.flush()
    except OSError:  # nobody reads it any more
        return _ERROR
    return code


def _end(answers: Path, code: int) -> None:
    answers.write_text(f"{code}\n")
    answers.unlink()
    os._exit(0)


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before
        os._exit(_ERROR)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
