"""The agent with ``efsmi`` in memory: making an instance takes 200 ms, and the rest nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from unittest.mock import patch

from bench.prepare.place import OTHERS, SHARED
from dra_driver.agent import main
from dra_driver.model.effects import Effects
from dra_driver.telemetry.program import run_program
from tests.unit.memory_efsmi import MemoryEfsmi

CREATE_SECONDS: Final = 0.2


class SlowToCreate(MemoryEfsmi):
    """Different cards are divided at the same time."""

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        if "--create-instance" in arguments:
            time.sleep(CREATE_SECONDS)
        return super().run(*arguments, inherit=inherit)


def _in_memory(_path: Path, *, effects: Effects, **_limits: float) -> MemoryEfsmi:
    found = SlowToCreate.of(*map(str, (*SHARED, *OTHERS)))
    found.effects = effects
    return found


if __name__ == "__main__":
    with patch("dra_driver.agent.context.Efsmi", _in_memory):
        run_program(main.run)
