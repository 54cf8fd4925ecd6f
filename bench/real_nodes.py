"""A cluster with real nodes for a measurement: as the tests on clusters have it. Needs root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bench.report import say
from tests.cluster.cluster import Cluster
from tests.cluster.image.build import driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.e2e.installation import MACHINES


@contextmanager
def real_nodes(kubernetes: str) -> Iterator[Cluster]:
    """Kubernetes of that version, with a node for each of MACHINES, which has the driver's
    image."""
    settings = Settings(f"bench-{os.getpid()}", kubernetes=kubernetes, nodes=len(MACHINES))
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        cluster.load_image(driver_archive(Inputs(), say))
        yield cluster
    finally:
        cluster.down()
