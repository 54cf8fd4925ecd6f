"""What every program does around its work: errors for people, signals, and an end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dra_driver.model.errors import GcuError
from dra_driver.telemetry import logs

logger = logging.getLogger(__name__)

Run = Callable[[Sequence[str], Mapping[str, str], threading.Event], None]

LINGER: Final = 20.0
"""Seconds for what is under way when a program has stopped."""


class Deadline:
    """`seconds` for several steps, each of which gets what those before it left."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def left(self) -> float:
        """Seconds, never below 0."""
        return max(0.0, self._end - self._clock())


def run_program(run: Run, *, linger: float = LINGER) -> None:
    """Call `run` with the arguments, the environment and an event that SIGTERM or SIGINT sets.

    Exits with 1 and the sentence of a GcuError, which is how `run` says that it cannot work. The
    process ends within `linger` seconds after that, whatever its threads are doing.
    """
    logs.configure("info")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(sys.argv[1:], os.environ, stop)
    except GcuError as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is for people, a trace is not
        _end_within(linger, exit_code=1)
        sys.exit(1)
    logger.info("stopped")
    _end_within(linger, exit_code=0)


def _end_within(seconds: float, *, exit_code: int) -> None:
    """The interpreter waits for threads of pools; one that sits in a call is not waited for
    longer than that. Nothing is lost with it: it could be killed at any moment."""

    def leave() -> None:
        logger.warning("what was under way has not ended within %g s, and is left", seconds)
        os._exit(exit_code)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()
