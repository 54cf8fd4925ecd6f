"""The frame of every program: error messages, signals, and the end of the process."""

from __future__ import annotations

import faulthandler
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
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)


Run = Callable[[Sequence[str], Mapping[str, str], threading.Event], None]
"""A program's work, by arguments, environment and an event `stop`. It returns after `stop` is set,
and raises GcuError if it cannot work."""


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
    _set_on_signals(stop)
    try:
        run(sys.argv[1:], os.environ, stop)
    except GcuError as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is for people, a trace is not
        _end_within(linger, exit_code=1)
        sys.exit(1)
    logger.info("stopped")
    _end_within(linger, exit_code=0)


def _set_on_signals(stop: threading.Event) -> None:
    """SIGTERM and SIGINT set the event, by a thread of its own. A process that is stopped (SIGSTOP)
    may be handed them in any of its threads when it goes on; Python runs handlers in the main
    thread alone, which would wait for ever."""
    received, sent = os.pipe()
    os.set_blocking(sent, False)
    signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # in place of the default: the process would end

    def run() -> None:
        while os.read(received, 1):
            stop.set()

    threading.Thread(target=run, name="signals", daemon=True).start()


def _end_within(seconds: float, *, exit_code: int) -> None:
    """The interpreter would wait for the threads of pools as long as their calls take. Nothing is
    lost, because a program may be killed at any moment."""

    def end() -> None:
        logger.warning("threads still run after %g s; the process ends without them", seconds)
        os._exit(exit_code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
