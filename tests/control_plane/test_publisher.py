"""The publisher against a real API server, with the rights of the chart's agent."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dra_driver.agent.slices.slice_watcher import own_slices
from dra_driver.agent.slices.slices import dropped_fields
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from tests.chart.helm import RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver
from tests.control_plane.objects import resource_slice, whole
from tests.control_plane.publishing import Rig, timeless

pytestmark = pytest.mark.control_plane

UNHEALTHY = {"key": f"{DRIVER}/unhealthy", "value": "health", "effect": "NoSchedule"}


@pytest.fixture
def node(control_plane: Cluster, api: Client) -> Iterator[str]:
    name = f"publishing-{secrets.token_hex(3)}"
    control_plane.add_node_object(name)
    yield name
    for each in api.list(RESOURCE_SLICES, field_selector=own_slices(name)).items:
        api.delete(RESOURCE_SLICES, each["metadata"]["name"])
    api.delete(NODES, name)


@pytest.fixture
def rig(driver: Driver, api: Client, node: str, tmp_path: Path) -> Iterator[Rig]:
    """With two cards; the account is that of an agent's pod on the node."""
    kubeconfig = driver.kubeconfig("agent", tmp_path / "agent", node=node)
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    rig = Rig(client, api, node, [whole(1), whole(2)])
    yield rig
    rig.stop()
    client.close()


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


def test_deleted_slices_are_published_again(rig: Rig, api: Client) -> None:
    """As the kubelet does when it starts."""
    rig.start()
    [before] = rig.wait((1, 2))
    api.delete(RESOURCE_SLICES, before["metadata"]["name"])
    wait_until(lambda: rig.shown() == [(1, 2)], PATIENCE, "the slice again")
    assert rig.slices()[0]["metadata"]["uid"] != before["metadata"]["uid"]


def _fewer(spec: Object) -> None:
    del spec["devices"][0]


def _tolerable(spec: Object) -> None:
    del spec["devices"][0]["taints"]


def _more(spec: Object) -> None:
    spec["devices"][0]["attributes"]["speed"] = {"int": 7}


@pytest.mark.parametrize("change", [_fewer, _tolerable, _more])
def test_somebodys_change_is_put_back(
    rig: Rig, api: Client, change: Callable[[Object], None]
) -> None:
    rig.start()
    [ours] = rig.wait((1, 2))
    theirs = deepcopy(ours)
    change(theirs["spec"])
    changed = api.replace(RESOURCE_SLICES, theirs)
    assert changed["spec"] != ours["spec"]

    def is_ours() -> bool:
        [found] = rig.slices()
        return timeless(found) == timeless(ours)

    wait_until(is_ours, PATIENCE, "our slice again", seen=lambda: str(rig.slices()))


@pytest.mark.parametrize("name", ["{node}-stale", "{node}-gcu.enflame.com-000"])
@pytest.mark.parametrize("pool", ["gcu.enflame.com/{node}", "{node}"])
def test_what_another_version_left_goes(rig: Rig, api: Client, name: str, pool: str) -> None:
    stale = resource_slice(rig.node, [whole(9)])
    stale["metadata"]["name"] = name.format(node=rig.node)
    stale["spec"]["pool"]["name"] = pool.format(node=rig.node)
    api.create(RESOURCE_SLICES, stale)
    rig.start()

    def only_ours() -> bool:
        specs = [timeless(each) for each in rig.slices()]
        return [(spec["pool"]["name"], spec["devices"]) for spec in specs] == [
            (f"gcu.enflame.com/{rig.node}", [whole(1), whole(2)])
        ]

    wait_until(only_ours, PATIENCE, "our slice alone", seen=lambda: str(rig.slices()))


def test_slices_of_others_are_left_alone(rig: Rig, api: Client) -> None:
    other_node = resource_slice("elsewhere", [whole(1)])
    other_driver = resource_slice(rig.node, [])
    other_driver["metadata"]["name"] = f"{rig.node}-other"
    other_driver["spec"] |= {"driver": "gpu.example.com"}
    made = [api.create(RESOURCE_SLICES, each) for each in (other_node, other_driver)]
    rig.start()
    rig.wait((1, 2))
    for each in made:
        name = each["metadata"]["name"]
        assert api.get(RESOURCE_SLICES, name)["spec"] == each["spec"]
        api.delete(RESOURCE_SLICES, name)


def test_slices_go_with_their_node_and_come_with_the_next(
    rig: Rig, api: Client, control_plane: Cluster
) -> None:
    publisher = rig.start()
    rig.wait((1, 2))
    api.delete(NODES, rig.node)
    wait_until(lambda: rig.slices() == (), PATIENCE, "the garbage collector")
    rig.wait_problem(publisher, f'nodes "{rig.node}" not found')
    control_plane.add_node_object(rig.node)
    wait_until(lambda: rig.shown() == [(1, 2)], PATIENCE, "the slice again")
    assert publisher.problem is None


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


def test_a_conflict_is_settled_by_comparing_again(rig: Rig, api: Client) -> None:
    """The watch has not told yet that somebody changed the slice."""
    rig.start()
    [ours] = rig.wait((1, 2))
    rig.stop()
    behind = rig.made()
    behind.published.on_replace([ours])
    labelled = deepcopy(ours)
    labelled["metadata"]["labels"] = {"by": "somebody"}
    newer = api.replace(RESOURCE_SLICES, labelled)
    rig.devices = [whole(1)]
    assert not behind._attempt()
    assert behind.problem == "the cards have not been published yet"
    assert rig.shown() == [(1, 2)]
    behind.published.on_written(newer)
    assert behind._attempt()
    assert rig.shown() == [(1, 1)]


def test_a_slice_deleted_unseen_is_made_anew(rig: Rig, api: Client) -> None:
    rig.start()
    [ours] = rig.wait((1, 2))
    rig.stop()
    behind = rig.made()
    behind.published.on_replace([ours])
    api.delete(RESOURCE_SLICES, ours["metadata"]["name"])
    rig.devices = [whole(1)]
    assert not behind._attempt()
    assert behind._attempt()
    assert rig.shown() == [(1, 1)]


def test_another_programs_slice_of_our_name_is_told(rig: Rig, api: Client) -> None:
    theirs = resource_slice("elsewhere", [whole(1)])
    theirs["metadata"]["name"] = f"{rig.node}-gcu.enflame.com-000"
    api.create(RESOURCE_SLICES, theirs)
    publisher = rig.start()
    rig.wait_problem(publisher, "exists, but is not one of this driver and node")
    api.delete(RESOURCE_SLICES, theirs["metadata"]["name"])
    rig.wait((1, 2))


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


def test_a_server_without_taints_is_refused_and_keeps_nothing() -> None:
    """Its kube-scheduler would allocate what the controller allocates, too."""
    settings = Settings(f"gates-{os.getpid()}", feature_gates={"DRADeviceTaints": False})
    cluster = Cluster.up(settings, owner=own_process())
    try:
        cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        admin = connect(cluster.kubeconfig, effects=Effects(), user_agent="tests/1")
        rig = Rig(admin, admin, "n1", [whole(1), whole(2)])
        publisher = rig.start()
        rig.wait_problem(
            publisher,
            "the API server drops spec.devices[0].taints, spec.devices[1].taints from "
            "ResourceSlices; enable the feature gate DRADeviceTaints on the API server",
        )
        rig.stop()
        assert "create resourceslices" in rig.tapped.requests  # the dry run
        assert rig.slices() == ()
        # One that somebody made without taints is not kept either.
        bare = resource_slice("n1", [whole(1)])
        bare["metadata"]["name"] = "n1-gcu.enflame.com-000"
        admin.create(RESOURCE_SLICES, bare)
        rig.wait_problem(rig.start(), "DRADeviceTaints")
        wait_until(lambda: rig.slices() == (), PATIENCE, "nothing left")
        with pytest.raises(NotFound):
            admin.get(RESOURCE_SLICES, "n1-gcu.enflame.com-000")
        rig.stop()
        admin.close()
    finally:
        cluster.down()
