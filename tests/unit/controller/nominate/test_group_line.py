"""Groups that wait while kube-scheduler allocates, whoever of their members comes or goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.write.volumes import LIFE
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from tests.unit.controller.allocator.build import claim, request
from tests.unit.controller.nominate.test_group_nominator import Cluster, taken
from tests.unit.controller.test_pod_groups import KUEUES, OURS
from tests.unit.controller.world import FAIRNESS, QUIET, pod


def full(gang: int) -> tuple[Cluster, list[str]]:
    """A node of two cards, and the claims that have them."""
    world = Cluster({"a": 2}, gang=gang)
    return world, [taken(world, "a", bus) for bus in (0, 1)]


def is_reserved(world: Cluster) -> bool:
    """Whether a pod that comes last may not use the node."""
    world.join("", "last", schedulingGroup=None)
    world.run_until_idle()
    [note] = world.notes_of("Pod", "last")
    return "reserved for" in note


def test_a_group_gets_the_nodes_that_are_reserved_for_it_with_a_member_that_came_later() -> None:
    """It is the first by name."""
    world, held = full(gang=2)
    world.join("g", "q", "r")
    world.run_until_idle()
    world.after(FAIRNESS)
    world.join("g", "p")
    world.run_until_idle()
    assert is_reserved(world)
    assert not any("none of" in note for note in world.notes_of("PodGroup", "g"))
    for name in held:
        world.remove(RESOURCE_CLAIMS, name)
    world.after(20)
    assert sorted(world.named(*"pqr")) == ["", "a", "a"]


def test_members_that_come_later_do_not_begin_the_wait_anew() -> None:
    world, _ = full(gang=2)
    for name in "srqp":
        world.join("g", name)
        world.run_until_idle()
        world.after(FAIRNESS - 10.0)
    assert is_reserved(world)


def test_a_lifted_group_takes_one_place_whoever_joins_it() -> None:
    world = Cluster({"a": 1}, gang=0, nomination_waiting=4)
    taken(world, "a", 0)
    for name in ("q", "p"):
        world.join("g", name)
        world.run_until_idle()
    world.join("", "alone", schedulingGroup=None)
    world.run_until_idle()
    assert not world.gated("p", "q", "alone")


def test_a_group_is_decided_when_the_volumes_of_later_members_were_read_again() -> None:
    world = Cluster({"a": 2}, gang=2)
    held = taken(world, "a", 0)
    world.join("g", "first")
    world.join("g", "second", volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])
    world.run_until_idle()
    world.time += LIFE
    world.remove(RESOURCE_CLAIMS, held)
    world.run_until_idle()
    assert world.named("first", "second") == ["a", "a"]


def refused(world: Cluster) -> None:
    """A member comes whose two containers use different requests of one claim."""
    world.put(RESOURCE_CLAIMS, claim("c-third", [request("left"), request("right")]))
    member = pod("third", "c-third", schedulingGates=[OURS], schedulingGroup={"podGroupName": "g"})
    left = {"resources": {"claims": [{"name": "c-third", "request": "left"}]}}
    member["spec"]["containers"].append({"name": "other"} | left)
    world.put(PODS, member)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda world: world.end("second"), id="a member is gone"),
        pytest.param(lambda world: world.remove(RESOURCE_CLAIMS, "c-second"), id="lacks a claim"),
        pytest.param(
            lambda world: world.join("g", "third", schedulingGates=[OURS, KUEUES]), id="is held"
        ),
        pytest.param(refused, id="is refused"),
        pytest.param(lambda world: world.remove(POD_GROUPS, "g"), id="there is no group"),
    ],
)
def test_no_node_is_reserved_for_a_group_that_cannot_be_tried(
    happens: Callable[[Cluster], None],
) -> None:
    world, _ = full(gang=2)
    world.join("g", "first", "second")
    world.run_until_idle()
    world.after(FAIRNESS)
    happens(world)
    world.run_until_idle()
    world.after(QUIET)
    assert not is_reserved(world)
