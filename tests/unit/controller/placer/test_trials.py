"""A pod that kube-scheduler is expected to refuse everywhere: it waits, and the best node is tried
now and then."""

from __future__ import annotations

from typing import Any

import pytest

from controller.placer.trials import AGAIN, FIRST
from dra_driver.kube.resources import NAMESPACES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
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


ZONE = "topology.kubernetes.io/zone"


def near(kind: str, **term: Any) -> Object:
    selector = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [selector | term]}}


def of_app(found: Object, app: str, namespace: str = "default") -> Object:
    more = {"labels": {"app": app}, "namespace": namespace}
    return found | {"metadata": found["metadata"] | more}


@pytest.fixture
def zone() -> World:
    """Node a has a card, node b has none; both are in one zone."""
    found = World(pool("a", [device("whole", 0)]))
    for name in "ab":
        each = node(name)
        each["metadata"]["labels"] = {ZONE: "z"}
        found.put(NODES, each)
    found.put(RESOURCE_CLAIMS, claim("c"))
    return found


@pytest.mark.parametrize("change", ["comes", "gets the label"])
def test_a_pod_that_is_to_be_near_another_one(zone: World, change: str) -> None:
    if change == "gets the label":
        zone.put(PODS, of_app(pod("other", nodeName="b"), "y"))
    zone.put(PODS, pod("p", "c", affinity=near("podAffinity")))
    zone.run_until_idle()
    assert zone.node_of("c") is None
    zone.put(PODS, of_app(pod("other", nodeName="b"), "x"))
    zone.run_until_idle()
    assert zone.node_of("c") == "a"


@pytest.mark.parametrize(
    ("whose", "change"),
    [
        ("its own", "ends"),
        ("its own", "loses the label"),
        ("its own", "its namespace loses the label"),
        ("that of the other one", "ends"),
        ("that of the other one", "its namespace loses the label"),
    ],
)
def test_a_pod_that_is_to_be_apart_from_another_one(zone: World, whose: str, change: str) -> None:
    apart = near("podAntiAffinity", namespaceSelector={"matchLabels": {"team": "x"}})
    mine, others = (apart, {}) if whose == "its own" else ({}, apart)
    other = of_app(pod("other", nodeName="b", affinity=others), "x")
    zone.put(PODS, other)
    zone.put(PODS, of_app(pod("p", "c", affinity=mine), "x"))
    zone.run_until_idle()
    assert zone.node_of("c") is None
    match change:
        case "ends":
            zone.remove(PODS, "other")
        case "loses the label":
            zone.put(PODS, of_app(other, "y"))
        case _:
            zone.put(NAMESPACES, {"metadata": {"name": "default", "labels": {}}})
    zone.run_until_idle()
    assert zone.node_of("c") == "a"


def test_pods_that_fit_elsewhere_are_not_of_one_class(world: World) -> None:
    """Each is waked by what helps it, although their claims are alike."""
    world.put(RESOURCE_CLAIMS, claim("d"))
    port = [{"hostPort": 80, "protocol": "TCP"}]
    for name, number in (("ports", 0), ("others", 1)):
        where = "ab"[number]
        there = {"name": "main", "ports": port}
        world.put(PODS, pod(name, containers=[there], nodeName=where))
    user_of_port = {"name": "main", "resources": {"claims": [{"name": "d"}]}, "ports": port}
    world.put(PODS, pod("q", "d", containers=[user_of_port]))
    world.run_until_idle()
    assert world.node_of("d") is None
    world.remove(PODS, "ports")
    world.run_until_idle()
    assert (world.node_of("c"), world.node_of("d")) == (None, "a")


def test_replicas_count_where_their_claims_are_allocated(zone: World) -> None:
    """Before kube-scheduler binds them."""
    each = node("c")
    each["metadata"]["labels"] = {ZONE: "other"}
    zone.put(NODES, each)
    zone.put(RESOURCE_SLICES, *pool("c", [device("whole", 0)]))
    zone.put(RESOURCE_CLAIMS, claim("d"))
    for name, its in (("p", "c"), ("q", "d")):
        zone.put(PODS, of_app(pod(name, its, affinity=near("podAntiAffinity")), "x"))
    zone.run_until_idle()
    assert {zone.node_of("c"), zone.node_of("d")} == {"a", "c"}
