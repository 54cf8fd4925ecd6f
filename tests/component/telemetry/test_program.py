"""How a program ends: by a signal, by an error for people, and always."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from dra_driver.telemetry.program import Deadline

_BEGIN = """
    import signal, sys, threading
    from concurrent.futures import ThreadPoolExecutor
    from dra_driver.model.errors import GcuError
    from dra_driver.telemetry.program import run_program
"""


def started(body: str) -> subprocess.Popen[str]:
    """A process that runs `body`, and has printed a line."""
    source = dedent(_BEGIN) + dedent(body)
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(number: signal.Signals) -> None:
    process = started("""
        def run(argv, environ, stop):
            print("up", flush=True)
            stop.wait()
            print("in order", flush=True)
        run_program(run)
    """)
    process.send_signal(number)
    said, log = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "in order\n")
    assert "stopped" in log


def stop_then_end(process: subprocess.Popen[str]) -> None:
    """It has SIGTERM when it goes on."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)


def test_a_signal_ends_it_that_came_while_it_was_stopped() -> None:
    """The kernel may hand it to any thread: without care more than half of the processes hang."""
    processes = [
        started("""
            def run(argv, environ, stop):
                for _ in range(8):
                    threading.Thread(target=threading.Event().wait, daemon=True).start()
                print("up", flush=True)
                stop.wait()
            run_program(run)
        """)
        for _ in range(8)
    ]
    try:
        for process in processes:
            stop_then_end(process)
        for process in processes:
            process.communicate(timeout=60)
        assert [process.returncode for process in processes] == [0] * 8
    finally:
        for process in processes:
            process.kill()


def test_a_signal_prints_where_each_thread_is_and_ends_nothing() -> None:
    process = started("""
        def waits_for_ever():
            threading.Event().wait()
        def run(argv, environ, stop):
            threading.Thread(target=waits_for_ever, daemon=True).start()
            print("up", flush=True)
            stop.wait()
        run_program(run)
    """)
    assert process.stderr is not None
    process.send_signal(signal.SIGUSR1)
    printed = [process.stderr.readline()]
    while "in run_program" not in printed[-1]:
        printed.append(process.stderr.readline())
    assert any("in waits_for_ever" in line for line in printed)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("end", "code"), [("return", 0), ("raise GcuError('no', remedy='go')", 1)], ids=["well", "ill"]
)
def test_a_thread_that_does_not_come_back_keeps_it_only_so_long(end: str, code: int) -> None:
    process = started(f"""
        def run(argv, environ, stop):
            ThreadPoolExecutor(1).submit(threading.Event().wait)
            print("up", flush=True)
            {end}
        run_program(run, linger=0.2)
    """)
    _, log = process.communicate(timeout=60)
    assert process.returncode == code
    assert "threads still run after 0.2 s; the process ends without them" in log


def test_a_program_without_such_a_thread_ends_at_once() -> None:
    process = started("""
        def run(argv, environ, stop):
            print("up", flush=True)
        run_program(run, linger=600)
    """)
    process.communicate(timeout=60)  # a tenth of what it would linger
    assert process.returncode == 0


def test_a_deadline_is_shared_and_never_below_zero() -> None:
    now = 100.0
    deadline = Deadline(10.0, lambda: now)
    now = 104.0
    assert deadline.left() == 6.0
    now = 111.0
    assert deadline.left() == 0.0
