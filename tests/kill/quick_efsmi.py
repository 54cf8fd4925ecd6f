"""``efsmi`` of simulated machines, a process of its own for each call, as fast as a fork.

The simulator's own is a Python program: its start costs fifty times what the call does, and an
agent calls it many times in each kill. Here a call is a shell that asks this process, which has
imported everything, for a fork that answers on the shell's own streams. To an agent it is the same:
a process in a session of its own that ends what it began when the agent is killed, and keeps the
files that it was given open as long as it lives. But a kill of the shell does not reach the fork:
what hangs is tried with the simulator's own.

This process reads calls from the FIFO that its argument names, one a line: the shell's number, the
machine's folder, the arguments. When its parent dies, so does it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dra_driver.simulator.efsmi import main as answer

_CHECKOUT = Path(__file__).parents[2]
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_ERROR = 1

# `read` waits for the fork, which writes the exit code when all else is done. The parentheses keep
# the shell's own streams as they are, as the fork may look at them at once.
_CALLER = """\
#!/bin/sh
answer={calls}.$$
mkfifo "$answer" && (echo "$$ {root} $*" >{calls}) && read -r code <"$answer"
exit "${{code:-{error}}}"
"""


class QuickEfsmi:
    """The process that forks; `close` ends it."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        os.mkfifo(self._calls)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kill.quick_efsmi", self._calls], cwd=_CHECKOUT
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


def main(calls: Path) -> None:
    _die_with_parent()
    gc.freeze()  # or a collection in a fork would copy it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Open for writing too, so that it never comes to its end.
    with os.fdopen(os.open(calls, os.O_RDWR), "r") as lines:
        for line in iter(lines.readline, ""):
            number, root, *arguments = line.split()
            if os.fork() == 0:
                _die_with_parent()
                _end(Path(f"{calls}.{number}"), _answered(int(number), root, arguments))


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


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
