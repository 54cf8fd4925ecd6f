"""A pod, its claims, and the cards that there are."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import allocation, results
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import node_of, resource_slices, whole

UNHEALTHY = {"key": "gcu.enflame.com/unhealthy", "value": "lost", "effect": "NoSchedule"}


def test_unsatisfiable_is_told_on_pod_and_claim(stage: Stage, start_controller: Start) -> None:
    stage.add_node([whole(0, UNHEALTHY), whole(1, UNHEALTHY)])
    start_controller()
    stage.start("one")
    for kind in ("Pod", "ResourceClaim"):
        stage.wait_for_event(
            "one", f"{kind}: 2 cards: 2 unhealthy", reason="Warning GcuAllocationFailed"
        )


def test_a_card_that_a_deleted_claim_still_holds_comes_last(
    stage: Stage, start_controller: Start
) -> None:
    """The second pod waits for it with the reason, and gets it when the agent removes the taint."""
    held = {"key": "gcu.enflame.com/held", "value": "deleted-claim", "effect": "NoSchedule"}
    node = stage.add_node([whole(0, held), whole(1)])
    start_controller()
    stage.start("first")
    [given] = results(stage.allocated("first"))
    assert given.device == "whole-0000-01-00-0"
    stage.start("second")
    stage.wait_for_event("second", "1 still held by a deleted claim", reason="GcuAllocationFailed")
    for each in resource_slices(node, [whole(0), whole(1)]):
        stage.api.put(RESOURCE_SLICES, each)
    assert stage.bind("second") == node


def test_a_selector_that_cannot_be_evaluated_is_told(stage: Stage, start_controller: Start) -> None:
    stage.add_node([whole(0)])
    start_controller()
    stage.add_claim("one", selector='device.attributes["gcu.enflame.com"].speed > 1')
    stage.add_pod("user", "one")
    stage.wait_for_event("user", "no such key: speed")


def test_two_pods_and_one_card(stage: Stage, start_controller: Start) -> None:
    stage.add_node([whole(0)])
    start_controller()
    stage.start("first")
    stage.bind("first")
    stage.start("second")
    stage.wait_for_event("second", "held", reason="GcuAllocationFailed")
    assert allocation(stage.claim("second")) is None
    stage.end("first")
    stage.bind("second")
    assert [each.device for each in results(stage.claim("second"))] == ["whole-0000-00-00-0"]


def test_claims_of_one_pod_come_together(stage: Stage, start_controller: Start) -> None:
    """Never is one of them on the node that packs best and has no room for both."""
    stage.add_node([whole(0)])
    node = stage.add_node([whole(0), whole(1), whole(2)])
    start_controller()
    for name in ("one", "two"):
        stage.add_claim(name)
    stage.add_pod("user", "one", "two")
    assert stage.bind("user") == node
    held = [each for written in stage.writes_to("one", "two") for each in results(written)]
    assert {each.pool for each in held} == {f"gcu.enflame.com/{node}"}


def test_a_claim_that_pods_share_draws_them_to_its_node(
    stage: Stage, start_controller: Start
) -> None:
    node = stage.add_node([whole(0)])
    stage.add_node([whole(0), whole(1)])
    start_controller()
    stage.add_claim("shared")
    names = ["first", "second"]
    for name in names:
        stage.add_pod(name, "shared")
    assert node_of(stage.allocated("shared")) == node
    stage.reserve(stage.claim("shared"), *names)
    for name in names:
        stage.bind_to(name, node)
    stage.end("first")
    assert stage.is_allocated("shared")


POINTS = ["waiting", "allocated", "reserved"]


@pytest.mark.parametrize("point", POINTS)
def test_a_pod_that_is_replaced(stage: Stage, start_controller: Start, point: str) -> None:
    """Its claim, or the card, serves the pod of the same name that comes after it."""
    if point != "waiting":
        stage.add_node([whole(0)])
    start_controller()
    stage.start("user")
    match point:
        case "waiting":
            stage.wait_for_event("user", "GcuAllocationFailed")
            stage.add_node([whole(0)])
        case "allocated":
            stage.allocated("user")
        case "reserved":
            stage.bind("user")
    stage.end("user")
    stage.add_pod("user", "user")
    assert stage.bind("user") == stage.node_of("user")
    stage.end("user")
    stage.released("user")


def test_a_claim_that_is_deleted_while_allocated_frees_its_card(
    stage: Stage, start_controller: Start
) -> None:
    stage.add_node([whole(0)])
    start_controller()
    stage.start("first")
    stage.bind("first")
    stage.api.delete(RESOURCE_CLAIMS, "first", namespace=stage.namespace)
    stage.start("second")
    stage.wait_for_event("second", "held")
    stage.stays(lambda: not stage.node_of("second"), 0.3, "the card is still held")
    stage.end("first")
    assert "first" not in {each["metadata"]["name"] for each in stage.api.all(RESOURCE_CLAIMS)}
    stage.bind("second")
