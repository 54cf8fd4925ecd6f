"""The groups of pods that `kubectl gcu inspect` shows."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.cluster.state import read_cluster
from kubectl_gcu.inventory.groups import groups
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.test_pod_groups import group
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.scheduling.test_pod_groups import held, member, refuses
from tests.unit.kubectl_gcu.server import cluster

GATE: Final = [{"name": SCHEDULING_GATE}]
RUNNING: Final = [(PODS, member(name, nodeName=name[0])) for name in ("a0", "a1", "b0")]
DEVICES: Final = [(RESOURCE_CLAIMS, held(name)) for name in ("a0", "a1", "b0")]
WAITING: Final = [(PODS, member(name, schedulingGates=GATE)) for name in ("p", "q")]


def shown(*objects: tuple[Resource, Object], node: str = "", needs: int = 3, **more: Any) -> Any:
    server = cluster((POD_GROUPS, group("g", needs)), *objects, **more)
    return [str(each) for each in groups(read_cluster(server, "default"), node)]


def test_where_the_pods_of_a_group_run() -> None:
    running = "podgroup default/g: 3 of 3 needed bound: a (2), b (1)"
    assert shown(*RUNNING, *DEVICES) == [running]
    assert shown(*RUNNING, *DEVICES, node="b") == [running]
    assert shown(*RUNNING, *DEVICES, node="c") == []


def test_a_group_that_waits() -> None:
    assert shown(*WAITING) == ["podgroup default/g: 0 of 3 needed bound; 2 held by the gate"]
    later = [*RUNNING, *DEVICES, *WAITING, (PODS, member("r"))]
    says = "3 bound: a (2), b (1); 2 held by the gate; 1 not bound by the scheduler"
    assert shown(*later, needs=0) == [f"podgroup default/g: {says}"]


def test_pods_that_have_ended_do_not_count() -> None:
    ended = member("a1", nodeName="a", status={"phase": "Succeeded"})
    assert shown(RUNNING[0], (PODS, ended)) == ["podgroup default/g: 1 of 3 needed bound: a (1)"]


FOREIGN: Final = allocated("c-p", "a", "gpu-0", driver="gpu.example.com")


@pytest.mark.parametrize(
    ("claims", "is_shown"),
    [
        pytest.param([claim("c-p")], True, id="a claim without devices"),
        pytest.param([], True, id="a claim that does not exist"),
        pytest.param([FOREIGN], False, id="devices of another driver"),
    ],
)
def test_which_groups_are_shown(claims: list[Object], is_shown: bool) -> None:
    its = [(RESOURCE_CLAIMS, each) for each in claims]
    assert bool(shown((PODS, member("p")), *its)) is is_shown


def test_where_the_group_cannot_be_read() -> None:
    server = cluster((POD_GROUPS, group("g", 3)), *WAITING)
    old = refuses(server, NotFound("not served", status=404), POD_GROUPS, POD_GROUPS_V1BETA1)
    [view] = groups(read_cluster(old, "default"))
    assert (view.min_count, view.gated) == (None, 2)
    hidden = cluster(
        (POD_GROUPS, group("g", 3)), *WAITING, forbidden=[POD_GROUPS, POD_GROUPS_V1BETA1]
    )
    found = read_cluster(hidden, "default")
    assert found.missing[POD_GROUPS].endswith("how many pods a group needs is not shown")


def test_the_older_version_is_read() -> None:
    server = cluster((POD_GROUPS_V1BETA1, group("g", 3)), *WAITING)
    [view] = groups(read_cluster(refuses(server, NotFound("no", status=404), POD_GROUPS), "d"))
    assert view.min_count == 3


def test_table_and_json() -> None:
    server = cluster((POD_GROUPS, group("g", 3)), *RUNNING, *DEVICES)
    (code, table, _), (code_of_json, as_json, _) = (
        gcu(server, "inspect", f"-o={form}") for form in ("table", "json")
    )
    assert code == code_of_json == 0
    [*_, last] = table.splitlines()
    assert last == "podgroup default/g: 3 of 3 needed bound: a (2), b (1)"
    nodes = [["a", 2], ["b", 1]]
    [view] = json.loads(as_json)["groups"]
    assert view == {"name": "default/g", "minCount": 3, "nodes": nodes, "gated": 0, "ungated": 0}
