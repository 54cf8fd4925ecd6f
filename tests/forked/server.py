"""Becomes our programs, each a process of its own, as fast as a fork.

A program needs a second of a processor to import what it uses, and tests start some hundred: this
process imports it once. It reads orders from its standard input, one JSON object a line (`module`,
`argv`, `log`), and says ``started PID``, and ``ended PID CODE`` of each. When its
input ends, so do its programs.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

# What the programs import, and what they would import late, each anew.
import controller.main  # noqa: F401
import dra_driver.agent.main
import dra_driver.kube.http.kubeconfig  # noqa: F401

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_ENDS = {signal.SIGCHLD}


def main() -> None:
    # A collection in a fork would copy all that it shares with this process.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _say_who_ended)
    for line in sys.stdin:
        order = json.loads(line)
        # Nobody hears of an end before he has heard of the start.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        pid = os.fork()
        if pid == 0:
            _become(order)
        _say(f"started {pid}")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)


def _say_who_ended(_number: int, _frame: FrameType | None) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(f"ended {pid} {os.waitstatus_to_exitcode(status)}")


def _say(words: str) -> None:
    """At once and in one piece: a signal may come while another line is written."""
    os.write(1, f"{words}\n".encode())


def _become(order: Mapping[str, Any]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = [order["module"], *order["argv"]]
    sys.modules.pop(order["module"], None)  # its own code runs anew, under another name
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
