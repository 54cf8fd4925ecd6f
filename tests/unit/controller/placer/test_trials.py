"""A pod that kube-scheduler is expected to refuse everywhere: it waits, and the best node is tried
now and then."""

from __future__ import annotations

from typing import Any

import pytest

from controller.placer.trials import AGAIN, FIRST
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim, device, pool
from tests.unit.controller.world import QUIET, World, node, pod, unallocated

RDMA = "example.com/rdma"
ASKS = {"claims": [{"name": "c"}], "requests": {RDMA: "1"}}


def asking(**spec: Any) -> Object:
    return pod("p", "c", containers=[{"name": "main", "resources": ASKS}], **spec)


def offering(amount: str) -> Object:
    found = node("b")
    found["status"]["allocatable"][RDMA] = amount
    return found


def user(name: str = "user", **spec: Any) -> Object:
    """It has the only interface of node b."""
    resources = {"requests": {RDMA: "1"}}
    return pod(name, containers=[{"name": "main", "resources": resources}], nodeName="b", **spec)


@pytest.fixture
def world() -> World:
    """One interface, on node b, which another pod uses; nodes a and b have a card each."""
    found = World([each for name in "ab" for each in pool(name, [device("whole", 0)])])
    found.put(NODES, node("a"))
    found.put(NODES, offering("1"))
    found.put(PODS, user())
    found.put(RESOURCE_CLAIMS, claim("c"))
    found.put(PODS, asking())
    found.run_until_idle()
    return found


def tried(world: World, *, right: bool) -> float:
    labels = {"right": str(right).lower()}
    return world.metric("gcu_controller_predictions_tried_total", labels)


def test_it_waits_without_cards_and_says_why(world: World) -> None:
    assert world.node_of("c") is None
    assert any(f"2 nodes: 2 without free {RDMA}" in note for note in world.recorder.notes)


@pytest.mark.parametrize("change", ["ends", "is deleted", "the node has more", "another node"])
def test_it_goes_on_when_there_is_room(world: World, change: str) -> None:
    where = "b"
    match change:
        case "ends":
            world.put(PODS, user() | {"status": {"phase": "Succeeded"}})
        case "is deleted":
            world.remove(PODS, "user")
        case "the node has more":
            world.put(NODES, offering("2"))
        case "another node":
            more, where = offering("1"), "a"
            more["metadata"]["name"] = "a"
            world.put(NODES, more)
    world.run_until_idle()
    assert world.node_of("c") == where


def test_nothing_else_wakes_it(world: World) -> None:
    before = world.metric("gcu_controller_unsatisfied_total")
    for number in range(5):
        world.put(PODS, pod(f"other-{number}", nodeName="b"))
        world.put(NODES, node("a"))
        world.run_until_idle()
    assert world.metric("gcu_controller_unsatisfied_total") == before


def test_the_best_node_is_tried_all_the_same(world: World) -> None:
    world.after(FIRST - 1)
    assert world.node_of("c") is None
    world.after(1)
    assert world.node_of("c") == "a"
    assert (tried(world, right=True), tried(world, right=False)) == (0, 0)
    world.put(PODS, asking(nodeName="a"))
    world.run_until_idle()
    assert (tried(world, right=True), tried(world, right=False)) == (0, 1)


def test_a_prediction_that_was_right(world: World) -> None:
    world.after(FIRST)
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.run_until_idle()
    world.after(QUIET)
    assert world.node_of("c") is None
    assert (tried(world, right=True), tried(world, right=False)) == (1, 0)
    world.after(AGAIN - QUIET - 1)
    assert world.node_of("c") is None
    world.after(1)
    assert world.node_of("c") is not None


@pytest.mark.parametrize("priority", [0, 10])
def test_pods_of_lower_priority_are_preempted(world: World, priority: int) -> None:
    """kube-scheduler ends them once the claim is allocated there."""
    world.remove(PODS, "p")
    world.put(PODS, asking(priority=priority))
    world.run_until_idle()
    assert world.node_of("c") == ("b" if priority else None)


def test_a_pod_that_never_preempts_waits(world: World) -> None:
    world.remove(PODS, "p")
    world.put(PODS, asking(priority=10, preemptionPolicy="Never"))
    world.run_until_idle()
    assert world.node_of("c") is None
