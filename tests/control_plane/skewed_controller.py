"""The controller on a machine whose clock is wrong.

python -m tests.control_plane.skewed_controller <seconds> <flags of the controller>
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import patch

from controller import main
from controller.app import Controller

if __name__ == "__main__":
    skew = timedelta(seconds=float(sys.argv.pop(1)))
    with patch.object(
        main, "Controller", partial(Controller, now=lambda: datetime.now(UTC) + skew)
    ):
        main.main()
