"""The control plane of this folder: 1.34, or the chosen version if its server drops device taints.

It ends with the folder's last test. So a test leaves no nodes, slices or claims there, and no
webhook that is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_taints
from tests.control_plane.driver import Driver


@pytest.fixture(scope="package")
def control_plane(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    version = chosen_without_taints()
    settings = Settings(f"without-taints-{os.getpid()}", kubernetes=version, keep_nodes_ready=True)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    yield cluster
    cluster.down()


@pytest.fixture(scope="package")
def api(control_plane: Cluster) -> Iterator[Client]:
    """Our client, as administrator."""
    client = connect(control_plane.kubeconfig, effects=Effects(), user_agent="tests/1")
    with closing(client):
        yield client


@pytest.fixture(scope="package")
def driver(control_plane: Cluster) -> Driver:
    """The chart as helm installs it. Pods get the gate in namespaces with its label alone."""
    return Driver.install(control_plane, values={"schedulingGate": {"policy": True}})


@pytest.fixture(scope="package")
def controller_kubeconfig(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver.kubeconfig("controller", tmp_path_factory.mktemp("controller") / "kubeconfig")


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(control_plane: Cluster) -> Iterator[None]:
    """By a file's tests, for those of another one."""
    yield
    for kind in ("nodes", "resourceslices"):
        assert control_plane.get(kind)["items"] == []
