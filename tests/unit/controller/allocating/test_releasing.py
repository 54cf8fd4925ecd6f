"""Beside kube-scheduler: what is taken back, when, and what must not be."""

from __future__ import annotations

import copy

import pytest

from dra_driver.kube.errors import Conflict
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object, allocation
from tests.unit.controller.allocator.build import allocated, claim, device, pool, request
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.granted import granted
from tests.unit.controller.world import (
    PATIENCE,
    QUIET,
    RETRY,
    World,
    pod,
    reserved,
    unallocated,
    unschedulable,
)


def test_an_orphan_is_released() -> None:
    world = granted()
    world.remove(PODS, "p")
    assert world.run_until_idle() == ["c status"]
    assert allocation(world.claim("c")) is None


def test_a_pod_that_is_deleted_before_it_was_bound_gives_its_claims_back() -> None:
    """Who must remove its finalizer may be away."""
    world = granted()
    found = copy.deepcopy(world.api.live[PODS, "p"])
    found["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }
    world.put(PODS, found)
    assert world.run_until_idle() == ["c status"]
    assert allocation(world.claim("c")) is None
    assert world.after(PATIENCE) == []


def test_a_pod_that_lost_a_claim_gives_the_others_back_until_there_is_a_new_one() -> None:
    world = granted("c", "d")
    world.remove(RESOURCE_CLAIMS, "d")
    assert world.run_until_idle() == ["c status"]
    assert allocation(world.claim("c")) is None
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.after(RETRY)
    assert world.node_of("c") == world.node_of("d") == "b"


def test_a_pod_that_lacks_a_claim_takes_none_from_others() -> None:
    world = granted()
    world.put(PODS, pod("q", "c", "missing", status=unschedulable()))
    assert world.run_until_idle() == []


@pytest.mark.parametrize("change", ["reserved", "another user", "deleting", "theirs", "made"])
def test_not_an_orphan(change: str) -> None:
    world = granted()
    found = copy.deepcopy(world.claim("c"))
    match change:
        case "reserved":
            found = reserved(found, "q")
        case "another user":
            world.put(PODS, pod("q", "c"))
        case "deleting":
            found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        case "theirs":
            found["metadata"]["managedFields"] = written_by("kube-scheduler")
        case "made":
            owner = {"kind": "Pod", "controller": True, "uid": "uid-p"}
            found["metadata"]["ownerReferences"] = [owner]
    world.put(RESOURCE_CLAIMS, found)
    world.remove(PODS, "p")
    assert world.run_until_idle() == []


def test_a_reservation_in_the_meantime_is_a_conflict_and_wins() -> None:
    world = granted()
    world.remove(PODS, "p")
    world.api.write_errors = [Conflict("reserved", status=409)]
    live = reserved(world.claim("c"), "q")
    world.api.put(RESOURCE_CLAIMS, live)
    world.run_until_idle()
    world.after(60.0)
    assert allocation(world.claim("c")) is not None
    assert world.api.writes[-1] == "c status"
    assert len(world.api.writes) == 3  # finalizer, allocation, the one that met the conflict


def test_the_scheduler_cleared_it_quiet_live_read_then_another_node() -> None:
    world = granted()
    assert world.node_of("c") == "a"
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    assert world.run_until_idle() == []
    assert world.after(QUIET - 0.1) == []
    assert world.api.reads == []
    assert world.after(0.1) == ["c status"]
    assert world.api.reads == ["pods p"]
    assert world.node_of("c") == "b"


@pytest.mark.parametrize("seen", [True, False], ids=["the watch has both", "the watch has one"])
def test_it_is_quiet_where_the_claim_is_cleared_before_the_answer_is_read(*, seen: bool) -> None:
    world = World()
    write = world.api.replace

    def cleared_at_once(resource: Resource, body: Object, *, subresource: str = "") -> Object:
        stored = write(resource, body, subresource=subresource)
        if subresource == "status":
            world.api.replace = write  # type: ignore[method-assign]
            if seen:
                world.put(RESOURCE_CLAIMS, stored)
            world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
        return stored

    world.api.replace = cleared_at_once  # type: ignore[method-assign]
    world.ask("p", "c")
    assert world.run_until_idle() == ["c", "c status"]
    assert world.after(QUIET - 0.1) == []
    assert world.after(0.1) == ["c status"]


def test_that_all_nodes_failed_is_reported_and_they_are_tried_again() -> None:
    world = granted(slices=pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.run_until_idle()
    world.after(QUIET)
    assert world.node_of("c") is None
    assert "1 refused by the scheduler lately" in world.recorder.notes[-1]
    world.after(RETRY)
    assert world.node_of("c") == "a"


def test_a_node_that_failed_long_ago_comes_after_those_that_were_not_tried() -> None:
    world = granted()
    assert world.node_of("c") == "a"
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.run_until_idle()
    world.after(RETRY * 10)
    assert world.node_of("c") == "b"


def test_an_unschedulable_pod_gives_all_its_claims_back_together() -> None:
    world = granted("c", "d", slices=_two_nodes_of_two())
    first = world.node_of("c")
    assert world.node_of("d") == first
    world.put(PODS, pod("p", "c", "d", status=unschedulable()))
    assert world.run_until_idle() == []
    assert world.after(PATIENCE - 1) == []
    assert world.after(1.0) == ["c status", "d status"]
    assert world.after(QUIET) == ["c status", "d status"]
    assert world.node_of("c") == world.node_of("d") != first


def test_a_claim_that_its_pod_names_twice_is_released_once() -> None:
    world = granted()
    twice = pod("p", "c", status=unschedulable())
    twice["spec"]["resourceClaims"].append({"name": "again", "resourceClaimName": "c"})
    world.put(PODS, twice)
    world.run_until_idle()
    assert world.after(PATIENCE) == ["c status"]


def test_claims_of_a_pod_without_verdict_are_not_released() -> None:
    world = granted()
    assert world.after(PATIENCE * 3) == []


def test_what_the_scheduler_said_before_the_allocation_counts_later() -> None:
    """It may not have come to the pod again: many others wait for it."""
    world = World([])
    world.ask("p", "c", status=unschedulable())
    world.run_until_idle()
    world.put(RESOURCE_SLICES, pool("a", [device("whole", 0)])[0])
    world.run_until_idle()
    assert world.node_of("c") == "a"
    assert world.after(PATIENCE) == []
    assert world.after(PATIENCE * 3) == ["c status"]


def test_a_pod_whose_preemption_wanted_its_claims_is_waited_for_until_it_is_tried_anew() -> None:
    """kube-scheduler does so by itself after five minutes, in rounds of thirty seconds."""
    world = granted()
    said = unschedulable()
    words = "0/1 nodes are available: 1 {}. preemption: 0/1 nodes are available: 1 {}."
    message = words.format("Insufficient cpu", "cannot allocate all claims")
    said["conditions"][0]["message"] = message
    world.put(PODS, pod("p", "c", status=said))
    world.run_until_idle()
    assert world.after(329.0) == []
    assert world.after(1.0) == ["c status"]


def test_claims_of_a_nominated_pod_are_not_released() -> None:
    """Its condition is from before; the nominated node says what goes on now."""
    world = granted()
    world.put(PODS, pod("p", "c", status=unschedulable() | {"nominatedNodeName": "a"}))
    world.run_until_idle()
    assert world.after(PATIENCE * 3) == []
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.run_until_idle()
    assert world.after(PATIENCE) == ["c status"]


def test_a_reserved_claim_is_never_taken_back() -> None:
    world = granted()
    world.put(RESOURCE_CLAIMS, reserved(world.claim("c"), "p"))
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.run_until_idle()
    assert world.after(PATIENCE * 3) == []


def test_a_claim_that_others_wait_for_too_is_not_taken_back() -> None:
    world = granted()
    world.put(PODS, pod("q", "c"))
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.run_until_idle()
    assert world.after(PATIENCE * 3) == []


def test_a_claim_that_no_user_can_be_placed_with_is_taken_back() -> None:
    world = granted()
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.put(PODS, pod("q", "c", status=unschedulable()))
    world.run_until_idle()
    assert world.after(PATIENCE) == ["c status"]


@pytest.mark.parametrize("over", ["deleted", "ended"])
def test_a_claim_that_another_pod_waited_for_is_taken_back_when_that_is_over(over: str) -> None:
    world = granted()
    world.put(PODS, pod("q", "c"))
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.run_until_idle()
    assert world.after(PATIENCE * 3) == []
    if over == "deleted":
        world.remove(PODS, "q")
    else:
        world.put(PODS, pod("q", "c", status={"phase": "Failed"}))
    assert world.after(PATIENCE) == ["c status"]


@pytest.mark.parametrize("aside", ["gated", "deleting"])
def test_a_claim_is_released_beside_a_pod_that_the_scheduler_does_not_try(aside: str) -> None:
    world = granted()
    other = pod("q", "c")
    if aside == "gated":
        other["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    else:
        other["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.put(PODS, other)
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.run_until_idle()
    assert world.after(PATIENCE) == ["c status"]


def test_half_of_a_pods_claims_is_given_back_when_the_rest_cannot_follow() -> None:
    """The first claim was granted, then its neighbour was taken by somebody else."""
    world = World(_two_nodes_of_two())
    world.ask("p", "c")
    world.run_until_idle()
    node = world.node_of("c")
    assert node is not None
    world.put(RESOURCE_CLAIMS, allocated("x", node, "whole-0000-01-00-0"))
    world.put(RESOURCE_CLAIMS, claim("d"))
    world.remove(PODS, "p")
    world.put(PODS, pod("p", "c", "d"))
    world.run_until_idle()
    world.after(QUIET)
    assert world.node_of("c") == world.node_of("d") != node


def test_a_waiting_pod_gets_what_an_orphan_gave_back() -> None:
    world = granted(slices=pool("a", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, claim("d", [request()]))
    world.put(PODS, pod("q", "d"))
    world.run_until_idle()
    world.remove(PODS, "p")
    world.run_until_idle()
    assert world.node_of("d") == "a"


def _two_nodes_of_two() -> list[Object]:
    return [
        slice_
        for node in ("a", "b")
        for slice_ in pool(node, [device("whole", 0), device("whole", 1)])
    ]
