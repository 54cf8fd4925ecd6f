"""What follows on many calls, done once for all of them, a little later."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Later:
    """Calls `act` `delay` seconds after `ask` was called, once for all that ask meanwhile. `act`
    must not raise, nor wait. Thread-safe."""

    def __init__(self, act: Callable[[], None], *, delay: float) -> None:
        self._act = act
        self._delay = delay
        self._mutex = threading.Lock()
        self._timer: threading.Timer | None = None

    def ask(self) -> None:
        """Have it done. Costs next to nothing where somebody has asked before."""
        with self._mutex:
            if self._timer is None:
                self._timer = threading.Timer(self._delay, self._run)
                self._timer.daemon = True
                self._timer.start()

    def stop(self) -> None:
        """What was asked for is not done any more."""
        with self._mutex:
            if self._timer is not None:
                self._timer.cancel()

    def _run(self) -> None:
        with self._mutex:
            self._timer = None
        self._act()
