"""What `kubectl gcu explain` says about pods with limits that became no claim."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import EVENTS, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_LIMIT_PREFIX, CLASS_WHOLE, RESOURCE_CORE, RESOURCE_MEMORY
from kubectl_gcu.scheduling.steps import step_of
from tests.unit.controller.allocator.build import allocated
from tests.unit.controller.world import pod, unschedulable
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.server import cluster, event

OF_CLASS = f"{CLASS_LIMIT_PREFIX}{CLASS_WHOLE}"
NOT_SERVED = f"the limit {OF_CLASS} is not served: … Use a ResourceClaim"


def limited(*limits: str) -> Object:
    found = pod("p", status=unschedulable())
    found["status"]["conditions"][0]["message"] = "0/2 nodes are available: 2 Insufficient x."
    found["spec"]["containers"][0]["resources"] = {"limits": dict.fromkeys(limits, "1")}
    return found


@pytest.mark.parametrize("serves_claims", [True, False], ids=["claims", "limits"])
@pytest.mark.parametrize("limit", [OF_CLASS, RESOURCE_MEMORY, RESOURCE_CORE])
def test_a_limit_that_no_scheduler_extender_serves(limit: str, serves_claims: bool) -> None:
    step = step_of(limited(limit), {}, [], serves_claims=serves_claims)
    assert (step.who, step.text) == (
        "kube-scheduler",
        f"limits {limit}: 0/2 nodes are available: 2 Insufficient x.",
    )


def test_a_limit_after_a_class_that_nothing_turns_into_a_claim() -> None:
    about = event("GcuLimitNotServed", NOT_SERVED) | {"metadata": {"name": "e"}}
    found = explained(cluster((PODS, limited(OF_CLASS)), (EVENTS, about)))
    assert (found.step.who, found.step.text) == (
        "the pod's author or an administrator",
        NOT_SERVED,
    )


def test_a_claim_that_kube_scheduler_cannot_reserve_any_more() -> None:
    note = "claim default/c was allocated before Kubernetes 1.36, and kube-scheduler cannot reserve"
    its = allocated("c", "a", "whole-0000-01-00-0")
    step = step_of(pod("p", "c"), {"c": its}, [event("GcuClaimTooOld", note)], serves_claims=True)
    assert (step.who, step.text) == ("the pod's author or an administrator", note)
