"""An allocation that its pod cannot use: the claim is allocated again, if nobody else has it.

The pod was bound to another node, or an old API server wrote the allocation.
"""

from __future__ import annotations

import copy

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from tests.unit.controller.allocator.build import claim, device_class, request
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.granted import granted
from tests.unit.controller.world import (
    PATIENCE,
    QUIET,
    World,
    pod,
    reserved,
    unallocated,
    unschedulable,
)


def test_the_last_users_end_is_no_failure_of_the_node() -> None:
    """kube-controller-manager clears what its last user no longer needs."""
    world = granted()
    world.put(RESOURCE_CLAIMS, reserved(world.claim("c"), "p"))
    world.put(PODS, pod("p", "c", nodeName="a", status={"phase": "Succeeded"}))
    world.put(PODS, pod("q", "c"))
    world.put(RESOURCE_CLAIMS, unallocated(world.claim("c")))
    world.run_until_idle()
    world.after(QUIET)
    assert world.node_of("c") == "a"


def test_a_claim_whose_pod_was_bound_elsewhere_follows_it() -> None:
    """Reservation and binding were written by a scheduler that was late by minutes."""
    world = granted()
    assert world.node_of("c") == "a"
    world.put(RESOURCE_CLAIMS, reserved(world.claim("c"), "p"))
    world.put(PODS, pod("p", "c", nodeName="b"))
    assert world.run_until_idle() == ["c status"]
    assert "reservedFor" not in world.claim("c")["status"]
    assert world.after(QUIET) == ["c status"]
    assert world.node_of("c") == "b"


def test_of_a_claim_in_use_all_is_written() -> None:
    """What the controller does not keep of it is read before."""
    world = granted()
    found = reserved(world.claim("c"), "p")
    found["metadata"]["labels"] = {"team": "a"}
    found["spec"]["devices"]["constraints"] = [{"matchAttribute": "gcu.enflame.com/model"}]
    world.put(RESOURCE_CLAIMS, found)
    world.put(PODS, pod("p", "c", nodeName="b"))
    assert world.run_until_idle() == ["c status"]
    assert world.claim("c")["spec"] == found["spec"]
    assert (
        world.claim("c")["metadata"].items()
        >= {key: found["metadata"][key] for key in ("uid", "labels", "finalizers")}.items()
    )


def test_a_claim_in_use_that_has_changed_is_not_released() -> None:
    world = granted()
    found = reserved(world.claim("c"), "p")
    world.put(RESOURCE_CLAIMS, found)
    found["status"]["reservedFor"].append({"resource": "pods", "name": "q", "uid": "uid-q"})
    world.put(PODS, pod("p", "c", nodeName="b"))
    world.put_unseen(RESOURCE_CLAIMS, found)
    assert world.run_until_idle() == []
    assert world.node_of("c") == "a"


@pytest.mark.parametrize(
    "change", ["there", "one there", "one waits", "unknown", "unreserved", "deleting", "theirs"]
)
def test_a_claim_that_does_not_follow_its_pod(change: str) -> None:
    world = granted()
    found = reserved(world.claim("c"), "p")
    where = "b"
    users = found["status"]["reservedFor"]
    match change:
        case "there":
            where = "a"
        case "one there" | "one waits":
            users.append({"resource": "pods", "name": "q", "uid": "uid-q"})
            world.put(PODS, pod("q", "c", nodeName="a" if change == "one there" else ""))
        case "unknown":
            users.append({"resource": "pods", "name": "q", "uid": "uid-q"})
        case "unreserved":
            del found["status"]["reservedFor"]
        case "deleting":
            found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        case "theirs":
            found["metadata"]["managedFields"] = written_by("kube-scheduler")
    world.put(RESOURCE_CLAIMS, found)
    world.put(PODS, pod("p", "c", nodeName=where))
    assert world.run_until_idle() == []
    assert world.after(QUIET) == []


def refused_reservation(found: Object, claim_name: str) -> Object:
    """The pod with what kube-scheduler 1.36.3 says where a claim has no allocationTimestamp."""
    message = (
        'running PreBind plugin "DynamicResources": add reservation to claim default/'
        f'{claim_name}: ResourceClaim.resource.k8s.io "{claim_name}" is invalid: '
        'status.allocation: Invalid value: {"Devices":{},"AllocationTimestamp":'
        '"2026-11-25T15:21:58Z"}: field is immutable'
    )
    error = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    return found | {"status": {"conditions": [error | {"message": message}]}}


def allocated_by_old_server(world: World) -> Object:
    found = copy.deepcopy(world.claim("c"))
    del found["status"]["allocation"]["allocationTimestamp"]
    return found


def test_an_allocation_of_an_old_server_is_made_anew_if_nobody_has_it() -> None:
    world = granted()
    world.put(RESOURCE_CLAIMS, allocated_by_old_server(world))
    assert world.run_until_idle() == []
    world.put(PODS, refused_reservation(pod("p", "c"), "c"))
    assert world.run_until_idle() == ["c status"]
    assert allocation(world.claim("c")) is None
    world.after(QUIET)
    assert (allocation(world.claim("c")) or {})["allocationTimestamp"]
    assert world.after(PATIENCE * 10) == []


def test_an_allocation_of_an_old_server_that_others_have_stays_and_an_event_says_so() -> None:
    world = granted()
    world.put(RESOURCE_CLAIMS, reserved(allocated_by_old_server(world), "q"))
    world.put(PODS, pod("q", "c", nodeName="a"))
    world.put(PODS, refused_reservation(pod("p", "c"), "c"))
    assert world.run_until_idle() == []
    assert allocation(world.claim("c")) is not None
    [note] = [each for each in world.recorder.notes if each.startswith("Pod p: ")]
    assert "claim default/c was allocated before Kubernetes 1.36" in note


def test_a_claim_whose_class_is_gone_is_released_like_any_other() -> None:
    world = World()
    some = device_class("some", "whole")
    world.put(DEVICE_CLASSES, some)
    world.put(RESOURCE_CLAIMS, claim("c", [request(cls="some")]))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert world.node_of("c") == "a"
    world.remove(DEVICE_CLASSES, "some")
    world.put(PODS, pod("p", "c", status=unschedulable()))
    world.run_until_idle()
    world.after(PATIENCE)
    assert world.node_of("c") is None
