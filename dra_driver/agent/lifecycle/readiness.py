"""Tells people when the node stops serving GCUs for a reason that stays, and when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from dra_driver.agent.events import NOT_SERVING, SERVING, EventReporter
from dra_driver.util.background import Background

logger = logging.getLogger(__name__)

_LOOK_EVERY = 2.0


class ReadinessReporter(Background):
    """Looks at `problem`, the text of the readiness probe, in a thread of its own.

    What lasts less than `patience` seconds is told nobody: a start or a kubelet's restart.
    """

    def __init__(
        self,
        problem: Callable[[], str | None],
        event_reporter: EventReporter,
        *,
        patience: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("standing")
        self._problem = problem
        self._event_reporter = event_reporter
        self._patience = patience
        self._clock = clock
        self._since: float | None = None
        self._told: str | None = None

    def run_once(self) -> None:
        """One look; tells each problem once, and that there is none any more."""
        problem = self._problem()
        if problem is None:
            if self._told is not None:
                logger.info("GCUs are served again")
                self._event_reporter.normal(SERVING, "GCUs of this node are served again")
            self._since = self._told = None
            return
        now = self._clock()
        if self._since is None:
            self._since = now
        if now - self._since >= self._patience and problem != self._told:
            logger.warning("GCUs are not served: %s", problem)
            self._event_reporter.warning(NOT_SERVING, problem)
            self._told = problem

    def run(self) -> None:
        while not self._wait(_LOOK_EVERY):
            self.run_once()
