"""Allocations that are given up, by kube-scheduler or by the controller, and where they go."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, reserved_for
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import node_of, whole


def test_a_reservation_that_was_not_told_yet_is_not_lost(
    stage: Stage, start_controller: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """The controller takes back what it believes to be unreserved: the server knows better."""
    stage.add_node([whole(0)])
    start_controller()
    stage.start("one")
    found = stage.allocated("one")
    with stage.api.faults.late("watch", RESOURCE_CLAIMS):
        stage.reserve(found, "one")
        stage.refuse("one")
        stage.wait(lambda: "409 Conflict" in caplog.text, "conflict")
    assert [each["name"] for each in reserved_for(stage.claim("one"))] == ["one"]
    assert stage.node_of("one")


def test_the_live_pod_says_where_it_is_allocated_again(
    stage: Stage, start_controller: Start
) -> None:
    """It is bound after its allocation was given up, and the controller's watch is late."""
    first = stage.add_node([whole(0)])
    start_controller(quiet_time=0.3)
    stage.start("user")
    found = stage.allocated("user")
    stage.add_node([whole(0), whole(1)])
    with stage.api.faults.late("watch", PODS):
        stage.clear(found)
        stage.bind_to("user", first)
        assert node_of(stage.allocated("user")) == first


def test_an_allocation_never_moves_in_one_step(stage: Stage, start_controller: Start) -> None:
    """Otherwise a scheduler that reads the claim again after a conflict would bind the pod to the
    node of before. Here the controller gives the node up."""
    for _ in range(2):
        stage.add_node([whole(0)])
    start_controller()
    stage.start("one")
    first = node_of(stage.allocated("one"))
    stage.refuse("one")
    stage.wait(lambda: stage.node_of("one") not in {"", first}, "allocation on the other node")
    seen = [node_of(each) if allocation(each) else "" for each in stage.writes_to("one")]
    assert not any(a and b and a != b for a, b in pairwise(seen))


def test_a_claim_follows_a_pod_that_was_bound_apart_from_it(
    stage: Stage, start_controller: Start
) -> None:
    """By a scheduler that is late by more than the quiet time."""
    first = stage.add_node([whole(0)])
    start_controller()
    stage.start("user")
    found = stage.allocated("user")
    second = stage.add_node([whole(0)])
    stage.reserve(found, "user")
    stage.bind_to("user", second)
    stage.wait(lambda: stage.node_of("user") == second, "claim where its pod is")
    stage.reserve(stage.claim("user"), "user")
    stage.start("other")
    assert node_of(stage.allocated("other")) == first  # its card is free again


def test_a_node_that_is_lost_before_the_pod_is_bound(stage: Stage, start_controller: Start) -> None:
    first = stage.add_node([whole(0)])
    start_controller()
    stage.start("user")
    assert node_of(stage.allocated("user")) == first
    second = stage.add_node([whole(0), whole(1)])
    stage.remove_node(first)
    stage.refuse("user")
    stage.wait(lambda: stage.node_of("user") == second, "allocation on the other node")


def test_a_card_of_a_lost_node_is_held_until_its_pod_is_gone(
    stage: Stage, start_controller: Start
) -> None:
    """The pod may still run there: nobody hears of the node."""
    node = stage.add_node([whole(0)])
    start_controller()
    stage.start("user")
    stage.bind("user")
    stage.set_ready(node, "Unknown")
    ending = stage.pod("user")
    stage.put_pod(ending | {"metadata": ending["metadata"] | {"deletionTimestamp": "2026"}})
    stage.start("other")
    stage.wait_for_event("other", "GcuAllocationFailed")
    stage.set_ready(node, "True")
    stage.stays(lambda: not stage.is_allocated("other"), 0.3, "held")
    stage.end("user")
    assert stage.bind("other") == node
