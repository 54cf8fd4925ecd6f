"""Processes that a call of efsmi leaves behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dra_driver.hardware.efsmi import runner as efsmi_module
from dra_driver.hardware.efsmi.runner import EfsmiHung
from tests.unit.hardware.efsmi.test_runner import ends, tool

LEAVES_A_CHILD = "sleep 600 > /dev/null 2>&1 & echo done"


def test_a_child_that_a_call_leaves_keeps_no_lock(tmp_path: Path) -> None:
    """Each later call on the card would wait for it."""
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert tool(tmp_path, LEAVES_A_CHILD).run("-q", inherit=[file.fileno()]) == "done\n"
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    "script",
    [LEAVES_A_CHILD, f"{LEAVES_A_CHILD}; exit 3", "sleep 600 & wait"],
    ids=["it succeeds", "it fails", "it hangs"],
)
def test_as_process_1_it_takes_the_dead_that_calls_leave(tmp_path: Path, script: str) -> None:
    """In a container nobody else does, and each of them keeps a process ID."""
    efsmi = tool(tmp_path, script).path
    program = (
        "import ctypes, os\n"
        "from contextlib import suppress\n"
        "from pathlib import Path\n"
        "from dra_driver.hardware.efsmi.runner import Efsmi\n"
        "from dra_driver.model.effects import Effects\n"
        "from dra_driver.model.errors import HardwareError\n"
        "subreaper = 36  # prctl(2), PR_SET_CHILD_SUBREAPER\n"
        "assert ctypes.CDLL(None).prctl(subreaper, 1, 0, 0, 0) == 0\n"
        f"efsmi = Efsmi(Path({str(efsmi)!r}), timeout=0.5, effects=Effects())\n"
        "for _ in range(3):\n"
        "    with suppress(HardwareError):\n"
        "        efsmi.run('-q')\n"
        "with suppress(ChildProcessError):\n"
        "    print('left', os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout == b""


def test_a_child_that_not_even_a_kill_ends_lets_the_call_not_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the tool is a script, which ends, and its child sits in the kernel."""
    efsmi = tool(tmp_path, f"sleep 600 > /dev/null 2>&1 & echo $! >> {tmp_path}/pids")
    kill = os.killpg
    monkeypatch.setattr(efsmi_module, "_GRACE", 0)
    monkeypatch.setattr(os, "killpg", lambda group, number: number or kill(group, number))
    efsmi.run("-q")
    with pytest.raises(EfsmiHung, match="has not ended although it was killed"):
        efsmi.run("-q")
    [child] = (tmp_path / "pids").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    assert ends(int(child))
