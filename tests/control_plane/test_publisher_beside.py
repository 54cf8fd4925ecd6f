"""The publisher where others change or delete its slices, or have slices of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver
from tests.control_plane.objects import resource_slice, whole
from tests.control_plane.publishing import Rig, agents_rig, publishing_node, timeless

pytestmark = pytest.mark.control_plane


@pytest.fixture
def node(control_plane: Cluster, api: Client) -> Iterator[str]:
    with publishing_node(control_plane, api) as name:
        yield name


@pytest.fixture
def rig(driver: Driver, api: Client, node: str, tmp_path: Path) -> Iterator[Rig]:
    with agents_rig(driver, api, node, tmp_path / "agent") as rig:
        yield rig


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
    wait_until(lambda: publisher.problem is None, PATIENCE, "no problem")


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
