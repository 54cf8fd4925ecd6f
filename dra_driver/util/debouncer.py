"""What follows on many calls, done once for all of them, a little later."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import KW_ONLY, dataclass

from dra_driver.util.hooks import Clock, OnChange

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Debouncer:
    """Calls `act` once for all that ask, when nobody has asked for `delay` seconds, or the first of
    them has waited for `longest`. `act` must not raise, nor wait. If no thread can be started, who
    asks next is the first one. Thread-safe."""

    act: OnChange
    _: KW_ONLY
    delay: float
    longest: float
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self._mutex = threading.Lock()
        self._timer: threading.Timer | None = None
        self._due = 0.0
        self._quiet_at = 0.0

    def trigger(self) -> None:
        """Have it done. Costs next to nothing where somebody has asked before."""
        with self._mutex:
            now = self.clock()
            self._quiet_at = now + self.delay
            if self._timer is None:
                self._due = now + self.longest
                self._begin(self.delay)

    def stop(self) -> None:
        """What was asked for is not done any more."""
        with self._mutex:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _run(self) -> None:
        with self._mutex:
            if self._timer is None:  # stopped when it had run out already
                return
            left = min(self._quiet_at, self._due) - self.clock()
            self._timer = None
            if left > 0 and self._begin(left):
                return
        self.act()

    def _begin(self, seconds: float) -> bool:
        """Start the timer; returns whether there is a thread for it."""
        timer = threading.Timer(seconds, self._run)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError as error:  # the pod's limit of processes
            logger.warning("what others wait for is done later: %s", error)
            return False
        self._timer = timer
        return True
