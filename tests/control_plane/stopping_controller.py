"""The controller, stopped (SIGSTOP) with a write in hand: after it looked at its lease, before the
server got the write.

    python -m tests.control_plane.stopping_controller <file> <flags of the controller>

It stops itself before the second write of its deciding side that follows the making of the file:
the first one adds a claim's finalizer, the second one allocates.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from unittest.mock import patch

from controller import main
from dra_driver.model.effects import Effects, Point

_OTHERS = frozenset({"leader", "events"})  # threads whose writes go on


class StopBeforeWrite(Effects):
    """Stops the process before one write."""

    def __init__(self, armed: Path, number: int) -> None:
        self._armed = armed
        self._left = number

    def before(self, point: Point) -> None:
        if point is not Point.API_WRITE or threading.current_thread().name in _OTHERS:
            return
        if self._armed.exists():
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(1.0)  # another thread may be the one that takes the signal


if __name__ == "__main__":
    armed = Path(sys.argv.pop(1))
    with patch.object(main, "Effects", lambda: StopBeforeWrite(armed, 2)):
        main.main()
