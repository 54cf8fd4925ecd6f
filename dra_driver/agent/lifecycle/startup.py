"""The start, step by step, each repeated until it succeeds.

A node's folders may come late (a kubelet that starts after us) or be wrong for a while (a full
disk): the agent waits for them, not ready and with the reason, instead of dying in a loop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from dra_driver.model.errors import GcuError
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)

Step = Callable[[], None]

_STARTING = "the agent is starting"


class Startup(Background):
    """Runs `steps` in their order, in a thread of its own. A step may raise GcuError, and is
    then run again later; what it began it must have taken back."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        backoff: Backoff | None = None,
        wait: Wait | None = None,
    ) -> None:
        """`wait(seconds)` sleeps, and returns True when the start was stopped."""
        super().__init__("startup", wait=wait)
        self._steps = steps
        self._backoff = backoff or Backoff()
        self.problem: str | None = _STARTING
        self.done = threading.Event()

    def is_alive(self) -> bool:
        """Whether it still runs or has done its work; else a fault of ours ended it."""
        return super().is_alive() or self.done.is_set()

    def run(self) -> None:
        """The thread's work."""
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
