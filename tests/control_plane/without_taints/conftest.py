"""The control plane of this folder: 1.34, or the chosen version if its server drops device taints.

It ends with the folder's last test. So a test leaves no nodes, slices or claims there, and no
webhook that is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_taints
from tests.control_plane.folder_fixtures import api, controller_kubeconfig, driver

__all__ = ["api", "controller_kubeconfig", "driver"]  # fixtures


@pytest.fixture(scope="package")
def control_plane(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    version = chosen_without_taints()
    settings = Settings(f"without-taints-{os.getpid()}", kubernetes=version, keep_nodes_ready=True)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    yield cluster
    cluster.down()


@pytest.fixture(scope="package")
def chart_values() -> Mapping[str, Any]:
    """Pods get the gate in namespaces with its label alone."""
    return {"schedulingGate": {"policy": True}}


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(control_plane: Cluster) -> Iterator[None]:
    """By a file's tests, for those of another one."""
    yield
    for kind in ("nodes", "resourceslices"):
        assert control_plane.get(kind)["items"] == []
