"""An agent that dies at one of its effects: `fatal_agent FOLDER NAME`, then the agent's own flags.

It writes the moments that it passes to ``FOLDER/NAME.trace``, and reads from ``FOLDER/NAME.order``
at which one it dies.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from dra_driver.agent.main import run
from dra_driver.telemetry.program import run_program
from tests.kill.moments import FatalEffects

if __name__ == "__main__":
    folder, name = Path(sys.argv[1]), sys.argv[2]
    sys.argv = ["gcu-dra-agent", *sys.argv[3:]]
    effects = FatalEffects(folder / f"{name}.trace", folder / f"{name}.order")
    run_program(partial(run, effects=effects))
