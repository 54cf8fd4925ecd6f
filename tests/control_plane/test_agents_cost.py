"""What an agent costs the API server; `make bench-agents` measures the same of many."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.agents import BOUNDS, WATCHES, Measurement
from dra_driver.kube.client import connect
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.control_plane.agent_fleet import fleet
from tests.control_plane.audit import AuditLog
from tests.control_plane.driver import Driver

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

_AGENTS = 5
_NAMESPACE = "fleet"


@pytest.fixture
def measurement(short_folder: Path) -> Iterator[Measurement]:
    log = AuditLog(short_folder)
    settings = Settings(f"fleet-{os.getpid()}", keep_nodes_ready=True, extra_flags=log.flags)
    cluster = Cluster.up(settings, owner=own_process())
    Driver.install(cluster)
    cluster.kubectl("create", "namespace", _NAMESPACE)
    api = connect(cluster.kubeconfig, effects=Effects(), user_agent="tests/1")
    with fleet(cluster, api, short_folder, count=_AGENTS, namespace=_NAMESPACE) as agents:
        yield Measurement(cluster, log, agents)
    api.close()
    cluster.down()


def test_no_more_requests_than_the_documentation_says(measurement: Measurement) -> None:
    costs = {
        "start": measurement.start(),
        "claim": measurement.claims(),
        "restart": measurement.restart(),
    }
    costs["rest"], watches = measurement.rest(lapse=60.0, seconds=20.0)
    costs["return"] = measurement.come_back(away_for=10.0, seconds=0.0)
    found = {name: (cost.each, cost.kinds()) for name, cost in costs.items()}
    assert watches == WATCHES
    for name, (requests, kinds) in found.items():
        assert 0.0 < requests <= BOUNDS[name], (name, kinds)
