"""From a waiting pod to allocated claims, or to words why not."""

from __future__ import annotations

import copy

import pytest

from controller.cache.cache import WATCHED
from controller.queue.event_queue import Replaced
from dra_driver.kube.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import FINALIZER
from tests.unit.controller.allocator.build import (
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.allocator.decide import cards
from tests.unit.controller.world import World, node, pod


def test_finalizer_first_then_the_allocation_and_no_reservation() -> None:
    world = World()
    world.ask("p", "c")
    assert world.run_until_idle() == ["c", "c status"]
    stored = world.claim("c")
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert "reservedFor" not in stored["status"]
    assert stored["status"]["allocation"]["allocationTimestamp"] == "2026-01-02T00:00:00Z"
    assert world.node_of("c") == "a"


def test_a_present_finalizer_is_not_written_again() -> None:
    world = World()
    protected = claim("c")
    protected["metadata"]["finalizers"] = ["other", FINALIZER]
    world.put(RESOURCE_CLAIMS, protected)
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert world.after(5.0) == ["c status"]  # once allocated before, perhaps: the quiet time first


def test_a_claim_with_opaque_parameters_is_protected_without_sending_them_back() -> None:
    world = World()
    opaque = {"driver": "other.example.com", "parameters": {"a": 1}}
    configured = claim("c")
    configured["spec"]["devices"]["config"] = [{"opaque": opaque}]
    world.put(RESOURCE_CLAIMS, configured)
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == ["c exactly", "c status"]
    assert world.claim("c")["metadata"]["finalizers"] == [FINALIZER]


def test_nothing_is_written_before_everything_was_listed() -> None:
    world = World(listed=[each for each in WATCHED if each is not PODS])
    world.ask("p", "c")
    world.worker.run_once(0)
    assert not world.worker.is_synced()
    assert world.api.writes == []
    world.events.put(Replaced(PODS, [world.api.live[PODS, "p"]]))
    assert world.run_until_idle() == [
        "c",
        "c",
        "c status",
    ]  # the term, the finalizer, the allocation


def test_a_follower_handles_events_and_writes_nothing() -> None:
    world = World()
    world.fence.close()
    world.ask("p", "c")
    world.worker.run_once(0)
    assert world.api.writes == []
    world.lead()
    assert world.run_until_idle() == ["c", "c status"]


def test_a_follower_queues_nothing() -> None:
    world = World()
    world.ask("stays", "stays")
    world.fence.close()
    for number in range(1500):
        name = f"n{number}"
        world.ask(name, name)
        world.remove(PODS, name)
        world.remove(RESOURCE_CLAIMS, name)
        world.worker.run_once(0)
    assert (world.queue.next_wakeup(), world.queue._changes) == (None, [])
    world.lead()
    world.run_until_idle()
    assert world.node_of("stays") == "a"


@pytest.mark.parametrize(
    "still",
    [
        pytest.param(pod("p", "c", schedulingGates=[{"name": "x"}]), id="gated"),
        pytest.param(pod("p", "c", status={"phase": "Succeeded"}), id="ended"),
        pytest.param(pod("p", "other"), id="its claim is missing"),
        pytest.param(pod("p"), id="no claims"),
    ],
)
def test_left_alone(still: Object) -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, still)
    assert world.run_until_idle() == []
    assert world.recorder.notes == []


def test_a_claim_without_a_pod_is_left_alone() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c"))
    assert world.run_until_idle() == []


def test_another_drivers_claim_is_left_alone() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c", [request(cls="gpu.example.com")]))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []
    assert world.recorder.notes == []


def test_a_claim_made_for_another_pod_is_left_alone() -> None:
    world = World()
    made = claim("c")
    made["metadata"]["ownerReferences"] = [{"kind": "Pod", "controller": True, "uid": "other"}]
    world.put(RESOURCE_CLAIMS, made)
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []


def test_a_claim_that_comes_after_its_pod() -> None:
    world = World()
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    world.put(RESOURCE_CLAIMS, claim("c"))
    assert world.run_until_idle() == ["c", "c status"]


@pytest.mark.parametrize("change", ["labels", "taints", "unschedulable", "Ready", "gone"])
def test_a_node_that_changes_is_filtered_again(change: str) -> None:
    """What is remembered of the nodes that fit is forgotten."""
    world = World(pool("b", [device("whole", 0), device("whole", 1)]))
    labelled = node("b")
    labelled["metadata"]["labels"] = {"zone": "x"}
    world.put(NODES, labelled)
    for name in ("c", "d"):
        world.put(RESOURCE_CLAIMS, claim(name))
    world.put(PODS, pod("p", "c", nodeSelector={"zone": "x"}))
    world.run_until_idle()
    assert world.node_of("c") == "b"
    changed = copy.deepcopy(labelled)
    match change:
        case "labels":
            changed["metadata"]["labels"] = {}
        case "taints":
            changed["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        case "unschedulable":
            changed["spec"]["unschedulable"] = True
        case "Ready":
            changed["status"] = {}
    if change == "gone":
        world.remove(NODES, "b")
    else:
        world.put(NODES, changed)
    world.put(PODS, pod("q", "d", nodeSelector={"zone": "x"}))
    world.run_until_idle()
    assert world.node_of("d") is None


def test_no_card_is_allocated_twice_before_the_watch_delivers() -> None:
    world = World()
    for name in ("one", "two", "three", "four"):
        world.ask(name, name)
    world.run_until_idle()
    results = [
        (each["pool"], each["device"])
        for name in ("one", "two", "three")
        for each in world.claim(name)["status"]["allocation"]["devices"]["results"]
    ]
    assert len(set(results)) == 3
    assert "Pod four: 3 cards: 3 held; 1 requested" in world.recorder.notes


def test_a_pod_that_waits_for_its_binding_takes_room() -> None:
    """Node a is the better one for both."""
    world = World([*pool("a", cards(3)), *pool("b", cards(4))])
    for name in "ab":
        full = node(name)
        full["status"]["allocatable"] = {"pods": "1"}
        world.put(NODES, full)
    for name in ("one", "two"):
        world.ask(name, name)
    world.run_until_idle()
    assert (world.node_of("one"), world.node_of("two")) == ("a", "b")
