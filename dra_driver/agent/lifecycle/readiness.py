"""Events when the node stops serving GCUs, and when it serves them again."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dra_driver.agent.events import NOT_SERVING, SERVING, EventReporter
from dra_driver.telemetry.probes import Check
from dra_driver.util.background import Background
from dra_driver.util.hooks import Clock

_CHECK_EVERY = 2.0
_PATIENCE = 15.0


@dataclass(eq=False)
class ReadinessReporter(Background):
    """Asks `ready`, as the readiness probe does, every two seconds in its own thread.

    A problem that lasts less than `_PATIENCE` seconds is not reported: the agent or the kubelet
    has only just started.
    """

    ready: Check
    event_reporter: EventReporter
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        super().__init__("readiness")
        self._since: float | None = None
        self._reported: str | None = None

    def run_once(self) -> None:
        """Check once. Reports each problem once, and the end of all problems."""
        problem = self.ready()
        if problem is None:
            if self._reported is not None:
                self.event_reporter.normal(SERVING, "GCUs of this node are served again")
            self._since = self._reported = None
            return
        now = self.clock()
        if self._since is None:
            self._since = now
        if now - self._since >= _PATIENCE and problem != self._reported:
            self.event_reporter.warning(NOT_SERVING, problem)
            self._reported = problem

    def run(self) -> None:
        while not self._wait(_CHECK_EVERY):
            self.run_once()
