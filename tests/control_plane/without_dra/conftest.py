"""The control plane of this folder: one without DRA, of the chosen version if that has none.

It ends with the folder's last test. So a test leaves no nodes and pods there, no program that runs,
and no webhook that is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_dra
from tests.control_plane.folder_fixtures import api, chart_values, controller_kubeconfig, driver

__all__ = ["api", "chart_values", "controller_kubeconfig", "driver"]  # fixtures


@pytest.fixture(scope="package")
def control_plane(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    settings = Settings(
        f"without-dra-{os.getpid()}",
        kubernetes=chosen_without_dra(),
        keep_nodes_ready=True,
    )
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    yield cluster
    cluster.down()


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(control_plane: Cluster) -> Iterator[None]:
    """By a file's tests, for those of another one."""
    yield
    assert control_plane.get("nodes")["items"] == []
