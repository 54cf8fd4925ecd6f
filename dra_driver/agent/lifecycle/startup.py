"""Runs the steps of the agent's start, and repeats each one until it succeeds.

A folder of the node may be missing at first (the kubelet starts later) or unusable for a while (a
full disk). Then the agent is not ready, says why, and waits, instead of crashing in a loop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from dra_driver.model.errors import GcuError
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)


Step = Callable[[], object]
"""One step. It may raise GcuError; it is repeated later, and finds what it began."""


_STARTING = "the agent is starting"


class Startup(Background):
    """Runs `steps` in their order, in its own thread."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        backoff: Backoff | None = None,
        wait: Wait | None = None,
    ) -> None:
        super().__init__("startup", wait=wait)
        self._steps = steps
        self._backoff = backoff or Backoff()
        self.problem: str | None = _STARTING
        self.done = threading.Event()

    def ended(self) -> str | None:
        """None also once all steps are done."""
        return None if self.done.is_set() else super().ended()

    def run(self) -> None:
        for step in self._steps:
            while not self._attempt(step):
                if self._wait(self._backoff.next()):
                    return
            self._backoff.reset()
            self.problem = _STARTING
            if self._stopped.is_set():
                return
        self.problem = None
        self.done.set()

    def _attempt(self, step: Step) -> bool:
        try:
            step()
        except GcuError as error:
            if self.problem != str(error):
                logger.warning("cannot start yet: %s", error)
            self.problem = str(error)
            return False
        return True
