"""The control plane of this folder: groups of pods, with the feature gates that are off by default.

It ends with the folder's last test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_groups
from tests.control_plane.conftest import Scene
from tests.control_plane.folder_fixtures import api, chart_values, controller_kubeconfig, driver
from tests.control_plane.pod_groups import GATES, SERVED, PodGroups

__all__ = ["api", "chart_values", "controller_kubeconfig", "driver"]  # fixtures

URGENT: Final = "urgent"


@pytest.fixture(scope="package")
def control_plane(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    settings = Settings(
        f"groups-{os.getpid()}",
        kubernetes=chosen_with_groups(),
        keep_nodes_ready=True,
        feature_gates=GATES,
        extra_flags={"kube-apiserver": (SERVED,)},
    )
    found = Cluster.up(settings, owner=own_process(), report=cluster_report)
    yield found
    found.down()


@pytest.fixture
def groups(scene: Scene) -> PodGroups:
    return PodGroups(scene)


@pytest.fixture(scope="package")
def urgent(control_plane: Cluster) -> None:
    """A PriorityClass of that name; those of the system are not for groups."""
    control_plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": URGENT},
            "value": 1000,
        }
    )
