"""What every program does around its work: errors for people, signals, and an end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from dra_driver.model.errors import GcuError
from dra_driver.telemetry import logs

logger = logging.getLogger(__name__)

Run = Callable[[Sequence[str], Mapping[str, str], threading.Event], None]


def run_program(run: Run) -> None:
    """Call `run` with the arguments, the environment and an event that SIGTERM or SIGINT sets.

    Exits with 1 and the sentence of a GcuError, which is how `run` says that it cannot work.
    """
    logs.configure("info")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(sys.argv[1:], os.environ, stop)
    except GcuError as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is for people, a trace is not
        sys.exit(1)
    logger.info("stopped")
