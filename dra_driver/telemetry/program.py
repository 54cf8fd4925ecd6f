"""The frame of every program: error messages, signals, and the end of the process."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from dra_driver.model.errors import GcuError
from dra_driver.telemetry import logs
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)


class Run(Protocol):
    """A program's work; it returns after `stop` is set, and raises GcuError if it cannot work."""

    def __call__(
        self, argv: Sequence[str], environ: Mapping[str, str], stop: threading.Event, /
    ) -> None: ...


_WAKES: Final = 1.0  # seconds
LINGER: Final = 20.0
"""Seconds for running threads after a program has stopped."""


class Deadline:
    """`seconds` for several steps in all."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def left(self) -> float:
        """The remaining seconds, never below 0."""
        return max(0.0, self._end - self._clock())


def run_program(run: Run, *, linger: float = LINGER) -> None:
    """Call `run` with the arguments, the environment and an event that SIGTERM or SIGINT sets.
    SIGUSR1 prints where each thread is to standard error.

    After a GcuError the program logs it and exits with 1. The process ends within `linger` seconds
    after `run`, even if threads still run.
    """
    logs.configure("info")
    faulthandler.register(signal.SIGUSR1, all_threads=True)
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


def wait_until_stopped(stop: threading.Event) -> None:
    """Return when `stop` is set; only for the main thread.

    The kernel may hand a signal to another thread, as right after SIGCONT. Python calls its
    handlers in the main thread alone, and only while that runs: so it wakes up now and then.
    """
    while not stop.wait(_WAKES):
        pass


def _end_within(seconds: float, *, exit_code: int) -> None:
    """The interpreter would wait for the threads of pools as long as their calls take. Nothing is
    lost, because a program may be killed at any moment."""

    def end() -> None:
        logger.warning("threads still run after %g s; the process ends without them", seconds)
        os._exit(exit_code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
