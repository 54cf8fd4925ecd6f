"""The publisher against a real API server, with the rights of the chart's agent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dra_driver.agent.slices.slices import dropped_fields
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import NODES
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from tests.chart.helm import RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver
from tests.control_plane.objects import whole
from tests.control_plane.publishing import Rig, agents_rig, publishing_node

pytestmark = pytest.mark.control_plane

UNHEALTHY = {"key": f"{DRIVER}/unhealthy", "value": "health", "effect": "NoSchedule"}


@pytest.fixture
def node(control_plane: Cluster, api: Client) -> Iterator[str]:
    with publishing_node(control_plane, api) as name:
        yield name


@pytest.fixture
def rig(driver: Driver, api: Client, node: str, tmp_path: Path) -> Iterator[Rig]:
    with agents_rig(driver, api, node, tmp_path / "agent") as rig:
        yield rig


def test_cards_are_published_and_belong_to_the_node(rig: Rig, api: Client) -> None:
    publisher = rig.start()
    [published] = rig.wait((1, 2))
    assert not dropped_fields([whole(1), whole(2)], published["spec"]["devices"])
    [owner] = published["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == (
        "Node",
        rig.node,
        api.get(NODES, rig.node)["metadata"]["uid"],
    )
    assert publisher.problem is None


def test_a_restart_with_nothing_changed_writes_nothing(rig: Rig) -> None:
    """Forms that the server might write otherwise are in it: quantities, taints, an int of 0."""
    odd = whole(1, UNHEALTHY, {"key": f"{DRIVER}/foreign", "effect": "NoExecute"})
    odd["attributes"]["resource.kubernetes.io/numaNode"] = {"int": 0}
    odd["capacity"]["memory"]["value"] = "40Gi"
    rig.devices = [odd]
    rig.start()
    before = rig.wait((1, 1))
    rig.stop()
    rig.tapped.requests.clear()
    publisher = rig.start()
    wait_until(lambda: publisher.problem is None, PATIENCE, "the second publisher content")
    assert sorted(rig.tapped.requests) == [
        "get nodes",
        "list resourceslices",
        "list resourceslices",  # hidden ones, which there could be
        "server_version",
        "watch resourceslices",
    ]
    assert rig.slices() == before


def test_comparing_costs_no_request(rig: Rig) -> None:
    publisher = rig.start()
    rig.wait((1, 2))
    wait_until(lambda: publisher.problem is None, PATIENCE, "the publisher content")
    rig.tapped.requests.clear()
    for _ in range(3):
        publisher.wake()
        wait_until(lambda: not publisher._woken.is_set(), PATIENCE, "a comparison")
    assert publisher.publish() is not None
    assert rig.tapped.requests == []


def test_changes_of_one_and_of_several_slices(rig: Rig) -> None:
    many = [whole(bus) for bus in range(65)]
    rig.devices = many
    publisher = rig.start()
    rig.wait((1, 64), (1, 1))

    def publish(*devices: Object) -> None:
        rig.devices = devices
        publisher.wake()

    publish(*many[:-1])
    rig.wait((2, 64))
    publish(*many[1:-1])
    rig.wait((2, 63))
    publish(*many)
    rig.wait((3, 64), (3, 1))
    publish(*many[:-1], whole(64, UNHEALTHY))
    wait_until(lambda: "unhealthy" in str(rig.slices()), PATIENCE, "the taint")
    assert rig.shown() == [(3, 64), (3, 1)]
    publish()
    rig.wait((4, 0))


def test_a_taint_that_stays_keeps_its_time(rig: Rig) -> None:
    """Pods that tolerate it for a while count from there; the server's clock has whole seconds."""
    rig.devices = [whole(1, UNHEALTHY)]
    publisher = rig.start()
    [before] = rig.wait((1, 1))
    [old] = before["spec"]["devices"]
    second = old["taints"][1]["timeAdded"]
    wait_until(lambda: datetime.now(UTC).strftime("%FT%TZ") > second, PATIENCE, "another second")
    rig.devices = [whole(1, UNHEALTHY), whole(2)]
    publisher.wake()
    [after] = rig.wait((1, 2))
    assert after["spec"]["devices"][0] == old


def test_without_hardware_what_is_published_stays(rig: Rig) -> None:
    rig.start()
    before = rig.wait((1, 2))
    rig.stop()
    rig.devices = None
    publisher = rig.start()
    wait_until(lambda: publisher.published.slices, PATIENCE, "the list")
    publisher.wake()
    wait_until(lambda: not publisher._woken.is_set(), PATIENCE, "a comparison")
    assert rig.slices() == before
    assert publisher.problem == "the cards have not been published yet"


MISSING = {
    "agent": "the agent on node '' may not write a slice of driver 'gcu.enflame.com'",
    "nobody": "cannot follow resourceslices: the API server answered 403 Forbidden",
}


@pytest.fixture(params=MISSING)
def other(
    request: pytest.FixtureRequest, control_plane: Cluster, driver: Driver, tmp_path: Path
) -> Iterator[tuple[Client, str]]:
    """A client that may not publish, and what it is told: of the agent's account by a token that
    is bound to no node, and of an account without rights."""
    account: str = request.param
    if account == "nobody":
        name = f"{RELEASE}-nobody"
        control_plane.kubectl("create", "serviceaccount", name, "--namespace", DRIVER_NAMESPACE)
    kubeconfig = driver.kubeconfig(account, tmp_path / account)
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    yield client, MISSING[account]
    client.close()


def test_missing_rights_are_told(other: tuple[Client, str], api: Client, node: str) -> None:
    client, told = other
    rig = Rig(client, api, node, [whole(1)])
    rig.wait_problem(rig.start(), told)
    rig.stop()
    assert rig.slices() == ()


def test_a_server_that_is_away_gets_the_slices_when_it_is_back(rig: Rig) -> None:
    rig.tapped.away = True
    publisher = rig.start()
    rig.wait_problem(publisher, "the API server did not answer")
    rig.tapped.away = False
    rig.wait((1, 2))
    wait_until(lambda: publisher.problem is None, PATIENCE, "no problem")
