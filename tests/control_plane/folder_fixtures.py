"""Fixtures of a folder that has a control plane of its own, which its conftest imports.

They are those of `tests.control_plane.conftest`, and end with the folder's last test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.control_plane.driver import Driver

__all__ = ["api", "chart_values", "controller_kubeconfig", "driver"]


@pytest.fixture(scope="package")
def api(control_plane: Cluster) -> Iterator[Client]:
    """Our client, as administrator."""
    client = connect(control_plane.kubeconfig, effects=Effects(), user_agent="tests/1")
    with closing(client):
        yield client


@pytest.fixture(scope="package")
def chart_values() -> Mapping[str, Any]:
    """Of the chart, beside those of all tests; for a folder to define anew."""
    return {}


@pytest.fixture(scope="package")
def driver(control_plane: Cluster, chart_values: Mapping[str, Any]) -> Driver:
    """The chart as helm installs it."""
    return Driver.install(control_plane, values=chart_values)


@pytest.fixture(scope="package")
def controller_kubeconfig(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver.kubeconfig("controller", tmp_path_factory.mktemp("controller") / "kubeconfig")
