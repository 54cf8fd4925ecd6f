"""The process that removes a cluster when its owner dies without having done so.

`python -m tests.cluster.keeper NAME`; started by whoever brings the cluster up, outlives it.
"""

from __future__ import annotations

import os
import sys

from tests.cluster import state
from tests.cluster.processes import Process
from tests.cluster.teardown import tear_down
from tests.descriptors import readable


def wait_for_end(process: Process) -> None:
    """Return when the process has ended, at once when it has already."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # The id may have been another's by the time the descriptor was made.
        if process.alive():
            readable(descriptor)
    finally:
        os.close(descriptor)


def main(name: str) -> None:
    """Guard the cluster until its owner dies."""
    found = state.load(name)
    if found is None or found.owner is None:
        return
    wait_for_end(found.owner)
    # Meanwhile the cluster may have been released, or be another one of the same name.
    if state.load(name) == found:
        tear_down(name)


if __name__ == "__main__":
    main(sys.argv[1])
