"""Starts agents, each a process of its own that runs the whole program, as fast as a fork.

An agent needs a second to import what it uses, and is started many hundred times: this process
imports it once. It reads orders from its standard input, one JSON object a line (`folder`, `name`,
`argv`), and answers each with the new process's number. When its input ends, so do its agents.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import dra_driver.kube.http.kubeconfig  # noqa: F401 - imported late otherwise: by each agent anew
from dra_driver.agent.main import run
from dra_driver.telemetry.program import run_program
from tests.kill.moments import FatalEffects

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    # A collection in a fork would copy all that it shares with this process.
    gc.collect()
    gc.freeze()
    # The kernel buries the dead: nobody here waits for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_agent(Path(order["folder"]), order["name"], order["argv"])
        print(pid, flush=True)


def _become_agent(folder: Path, name: str, argv: Sequence[str]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    log = os.open(folder / "agent.log", flags, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["gcu-dra-agent", *argv]
    effects = FatalEffects(folder / f"{name}.trace", folder / f"{name}.order")
    run_program(partial(run, effects=effects))
    sys.exit(0)


if __name__ == "__main__":
    main()
