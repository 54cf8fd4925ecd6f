"""What `kubectl gcu explain` says about pods that have a node already."""

from __future__ import annotations

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from kubectl_gcu.scheduling.steps import step_of
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.world import pod
from tests.unit.kubectl_gcu.explained import explained_lines
from tests.unit.kubectl_gcu.server import cluster


def running() -> Object:
    return pod("p", "c", status={"phase": "Running"}, nodeName="a")


def test_a_pod_that_was_bound_before_its_claim_was_allocated_waits_for_the_allocator() -> None:
    """Its author named the node, or another scheduler without DRA bound it."""
    server = cluster((RESOURCE_CLAIMS, claim("c")), (PODS, pod("p", "c", nodeName="a")))
    assert explained_lines(server) == [
        "pod default/p",
        "  asks:   1 of gcu.enflame.com",
        "  next:   the allocator",
        "  why:    1 card: 1 held; 1 requested",
        "  help:   it fits when any one of these claims ends: default/held",
    ]


def test_a_pod_that_was_bound_before_its_claim_was_made() -> None:
    step = step_of(pod("p", "c", nodeName="a"), {"c": None}, [], serves_claims=True)
    assert (step.who, step.text) == (
        "whoever creates the claim",
        "claim c of the pod does not exist",
    )


def test_conditions_of_another_drivers_device_are_no_problem_of_a_card() -> None:
    theirs = allocated("c", "a", "whole-0000-01-00-0")
    condition = {"type": "Degraded", "status": "False", "message": "all is well"}
    theirs["status"]["devices"] = [{"driver": "nic.example.com", "conditions": [condition]}]
    assert step_of(running(), {"c": theirs}, [], serves_claims=True).text == "it runs on node a"


def test_of_several_claims_the_one_that_failed_is_named() -> None:
    """The kubelet asks for all of them at once."""
    first = allocated("c", "a", "shared-0000-01-00-0", consumed={"slices": "1"})
    second = allocated("d", "a", "drs-0000-02-00-0", consumed={"size": "1"})
    failed = {"type": "Ready", "status": "False", "message": "efsmi ended with 1"}
    second["status"]["devices"] = [{"driver": "gcu.enflame.com", "conditions": [failed]}]
    claims = {"c": first, "d": second}
    step = step_of(pod("p", "c", "d", nodeName="a"), claims, [], serves_claims=True)
    assert step.text == "claim d is not prepared yet: efsmi ended with 1"
