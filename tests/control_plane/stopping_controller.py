"""The controller, stopped (SIGSTOP) with a write in hand: after it looked at its lease, before the
server got the write. Or after the server's answer, before the controller has read it.

    python -m tests.control_plane.stopping_controller <file> <moment> <flags of the controller>

It stops itself ``before-N`` or ``after-N``: the Nth write of its deciding side that follows the
making of the file. Where it allocates, the first one adds a claim's finalizer, the second one
allocates. Where it names nodes, the first one names the node, the second one lifts the gate.
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


class StopAtWrite(Effects):
    """Stops the process at one moment."""

    def __init__(self, armed: Path, moment: str) -> None:
        self._armed = armed
        self._side, _, number = moment.partition("-")
        self._left = int(number)

    def before(self, point: Point) -> None:
        if self._is_counted(point):
            self._left -= 1
            self._stop_if("before")

    def after(self, point: Point) -> None:
        if self._is_counted(point):
            self._stop_if("after")

    def _is_counted(self, point: Point) -> bool:
        is_others = threading.current_thread().name in _OTHERS
        return point is Point.API_WRITE and not is_others and self._armed.exists()

    def _stop_if(self, side: str) -> None:
        if self._left == 0 and side == self._side:
            self._side = ""
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(1.0)  # another thread may be the one that takes the signal


if __name__ == "__main__":
    armed, moment = Path(sys.argv.pop(1)), sys.argv.pop(1)
    with patch.object(main, "Effects", lambda: StopAtWrite(armed, moment)):
        main.main()
