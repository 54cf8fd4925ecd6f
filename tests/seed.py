"""The seed of everything that is drawn in tests: `GCU_SEED`, and the same in every run without it.

So what passed once of a commit passes again; new cases are for the soaks and benchmarks.
"""

from __future__ import annotations

import os
from typing import Final

SEED: Final = int(os.environ.get("GCU_SEED", "0"))
