"""The agent on a disk on which each sync takes longer, by the variable of that name."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from dra_driver.agent import main
from dra_driver.model.effects import Effects, Point
from dra_driver.telemetry.program import run_program

SYNC_DELAY: Final = "GCU_BENCH_SYNC_DELAY"
"""Seconds."""


class _SlowDisk(Effects):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def before(self, point: Point) -> None:
        if point is Point.JOURNAL_SYNC:
            time.sleep(self._seconds)


def _run(argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event) -> None:
    main.run(argv, environ, stop, effects=_SlowDisk(float(environ[SYNC_DELAY])))


if __name__ == "__main__":
    run_program(_run)
