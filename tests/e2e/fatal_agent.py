"""The agent's program, run in the agent's pod, which halts at a moment to be killed there.

The first process of a container is deaf to a SIGKILL of its own. So it says that it has come to
the moment, lets no other effect begin, and waits for whoever looks on from the node.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Final

from dra_driver.agent.main import run
from dra_driver.telemetry.program import run_program
from tests.kill.moments import FatalEffects

FOLDER: Final = "/var/lib/gcu-kill"
"""Of the node; both sides know it by this path."""
TRACE, ORDER, REACHED = "trace", "order", "reached"


def main() -> None:
    folder = Path(FOLDER)

    def halt() -> None:
        (folder / REACHED).touch()
        threading.Event().wait()

    effects = FatalEffects(folder / TRACE, folder / ORDER, die=halt)
    run_program(partial(run, effects=effects))


if __name__ == "__main__":
    main()
