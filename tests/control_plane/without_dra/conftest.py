"""The control plane of this folder: one without DRA, of the chosen version if that has none.

It ends with the folder's last test. So a test leaves no nodes and pods there, no program that runs,
and no webhook that is called.
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
from tests.cluster.versions import chosen_without_dra
from tests.control_plane.driver import Driver


@pytest.fixture(scope="package")
def control_plane(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    """It does not stream lists, as most servers without DRA."""
    settings = Settings(
        f"without-dra-{os.getpid()}",
        kubernetes=chosen_without_dra(),
        feature_gates={"WatchList": False},  # it is on from 1.34 on
        keep_nodes_ready=True,
    )
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
    """The chart as helm installs it, without a kube-scheduler of its own."""
    return Driver.install(control_plane)


@pytest.fixture(scope="package")
def controller_kubeconfig(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver.kubeconfig("controller", tmp_path_factory.mktemp("controller") / "kubeconfig")


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(control_plane: Cluster) -> Iterator[None]:
    """By a file's tests, for those of another one."""
    yield
    assert control_plane.get("nodes")["items"] == []
