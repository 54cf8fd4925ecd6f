"""Processes are known by more than their id, and outlive who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.errors import ClusterError, CommandError
from tests.cluster.keeper import wait_for_end
from tests.cluster.processes import Process, ProcessTable, run
from tests.cluster.waiting import wait_until


@pytest.fixture
def table(tmp_path: Path) -> ProcessTable:
    """A table whose processes are in no control group."""
    return ProcessTable(tmp_path, tmp_path, tmp_path / "none")


def test_own_process_is_alive() -> None:
    assert Process.of(os.getpid()).alive()


def test_reused_id_is_another_process() -> None:
    own = Process.of(os.getpid())
    earlier = replace(own, started=own.started - 1)
    assert not earlier.alive()
    assert not earlier.send(signal.SIGTERM)
    wait_for_end(earlier)


def test_ended_but_unreaped_process_is_not_alive() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        process = Process.of(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not process.alive()
        wait_for_end(process)


def test_a_process_whose_first_thread_has_ended_is_alive() -> None:
    """The others keep its files and ports open."""
    code = """if True:
        import ctypes, threading
        threading.Thread(target=threading.Event().wait).start()
        ctypes.CDLL(None).syscall(60, 0)  # exit of this thread alone, on x86-64
    """
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        state = Path(f"/proc/{child.pid}/status")
        wait_until(lambda: "State:\tZ" in state.read_text(), 60, "a dead thread", interval=0.01)
        process = Process.of(child.pid)
        was_alive = process.alive()
        child.kill()
        assert was_alive
    assert not process.alive()


def test_started_process_is_not_a_child_and_can_be_stopped(table: ProcessTable) -> None:
    process = table.start_outside("sleeper", ["sleep", "100"])
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert f"\nPPid:\t{os.getpid()}\n" not in status
    assert table.get("sleeper") == process
    assert table.names() == ("sleeper",)
    table.check("sleeper")
    table.stop("sleeper")
    assert not process.alive()


def test_check_shows_the_end_of_the_log(table: ProcessTable) -> None:
    process = table.start_outside("talker", ["sh", "-c", "echo last words; exec sleep 100"])
    wait_until(lambda: table.tail("talker"), 60, "the words", interval=0.01)
    process.stop()
    with pytest.raises(ClusterError, match=r"(?s)talker has ended.*last words"):
        table.check("talker")


def test_what_was_ended_is_forgotten(table: ProcessTable) -> None:
    process = table.start_outside("sleeper", ["sleep", "60"])
    table.end("sleeper")
    assert not process.alive()
    assert "sleeper" not in table.names()


def test_never_started(table: ProcessTable) -> None:
    with pytest.raises(ClusterError, match="never started"):
        table.get("nobody")


def test_run_tells_command_status_and_output() -> None:
    assert run(["cat"], stdin="given") == "given"
    with pytest.raises(CommandError, match=r"(?s)exit status 3.*to both.*of them") as caught:
        run(["sh", "-c", "echo to both; echo of them >&2; exit 3"])
    assert caught.value.status == 3
    with pytest.raises(ClusterError, match="not done within"):
        run(["sleep", "100"], timeout=0.01)
    with pytest.raises(ClusterError, match="not found"):
        run(["no-such-program-anywhere"])
