"""``gcu-dra-uninstall-sweep``: removes from its node what the driver had there.

A DaemonSet runs it when the agents' own is deleted. It talks to nobody: what came of it is the last
words of its container, which ``gcu-dra-uninstall-cleanup`` reads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dra_driver.config.loader import load
from dra_driver.model.errors import Refused
from dra_driver.telemetry.program import Deadline, run_program
from dra_driver.uninstall.answers import NOTHING_LEFT
from dra_driver.uninstall.settings import SweepSettings
from dra_driver.uninstall.traces import InUse, Traces

logger = logging.getLogger(__name__)

_DESCRIPTION = "Removes from this node what the driver had there, unless that is still needed."
_INTERVAL: Final = 0.5  # seconds between looks at whether the agent has ended


def main() -> None:
    """The console script."""
    run_program(run)


def run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    """Raises Refused where it was stopped before it knew."""
    name = "gcu-dra-uninstall-sweep"
    settings = load(SweepSettings, argv, environ, prog=name, description=_DESCRIPTION)
    traces = Traces(settings.kubelet_root, settings.cdi_dir)
    left = sweep(traces, deadline=Deadline(settings.patience), wait=stop.wait)
    logger.info("%s", left or NOTHING_LEFT)
    settings.answer.write_text(left or NOTHING_LEFT, encoding="utf-8")


def sweep(traces: Traces, *, deadline: Deadline, wait: Callable[[float], bool]) -> str:
    """Remove them, once the node's agent has ended; gives why they stay, or nothing. The kubelet
    gives an agent 45 s. `wait(seconds)` returns True when the program was stopped."""
    while True:
        try:
            return traces.remove()
        except InUse as error:
            if not deadline.left():
                return f"{traces.state} stays: {error}"
        if wait(_INTERVAL):
            raise Refused("stopped before the node's agent has ended")


if __name__ == "__main__":
    main()
