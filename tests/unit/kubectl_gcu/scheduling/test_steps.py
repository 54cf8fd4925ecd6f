"""In which step of its start `kubectl gcu explain` finds a pod, and who acts next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_SHARED, SCHEDULING_GATE
from kubectl_gcu.scheduling.steps import step_of
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.world import pod, unschedulable
from tests.unit.kubectl_gcu.server import event

BOUND: dict[str, Any] = {"nodeName": "a"}
NOT_ALLOCATED = "GcuAllocationFailed"


def prepared(found: Object, status: str, message: str = "") -> Object:
    condition = {"type": "Ready", "status": status, "message": message}
    entry = {"driver": "gcu.enflame.com", "device": "d", "conditions": [condition]}
    return found | {"status": found["status"] | {"devices": [entry]}}


def limited() -> Object:
    found = pod("p", status=unschedulable())
    found["status"]["conditions"][0]["message"] = "0/2 nodes are available: 2 have no room"
    found["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE_SHARED: "2"}}
    return found


def templated() -> Object:
    found = pod("p")
    found["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": "t"}]
    return found


def deleting() -> Object:
    found = pod("p", **BOUND)
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


CAUSES: dict[str, tuple[Object, Object | None, Sequence[Object], str, str]] = {
    "no devices": (
        pod("p", "c"),
        claim("c"),
        [event(NOT_ALLOCATED, "old"), event(NOT_ALLOCATED, "1 card: 1 held as a whole")],
        "the allocator",
        "1 card: 1 held as a whole",
    ),
    "no such claim": (pod("p", "c"), None, [], "whoever creates the claim", "does not exist"),
    "no template": (
        templated(),
        None,
        [event("FailedResourceClaimCreation", "template t not found")],
        "kube-controller-manager",
        "ResourceClaimTemplate t: template t not found",
    ),
    "a gate of others": (
        pod("p", "c", schedulingGates=[{"name": "x.io/hold"}]),
        claim("c"),
        [],
        "whoever set the scheduling gate",
        "held back by x.io/hold",
    ),
    "our gate": (
        pod("p", "c", schedulingGates=[{"name": SCHEDULING_GATE}]),
        allocated("c", "a", "whole-0000-01-00-0"),
        [],
        "the controller",
        "the scheduling gate goes next",
    ),
    "kube-scheduler": (
        pod("p", "c", status=limited()["status"]),
        allocated("c", "a", "whole-0000-01-00-0"),
        [],
        "kube-scheduler",
        "2 have no room",
    ),
    "the extender": (limited(), None, [], "scheduler extender", "shared-gcu: 0/2 nodes"),
    "the agent fails": (
        pod("p", "c", **BOUND),
        allocated("c", "a", "whole-0000-01-00-0"),
        [event("FailedPrepareDynamicResources", "efsmi ended with 1")],
        "the agent of node a",
        "claim c is not prepared yet: efsmi ended with 1",
    ),
    "the card is unhealthy": (
        pod("p", "c", **BOUND),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "False", "card 1: lost"),
        [],
        "the agent of node a",
        "not prepared yet: card 1: lost",
    ),
    "the image": (
        pod(
            "p",
            "c",
            status={
                "containerStatuses": [
                    {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ]
            },
            **BOUND,
        ),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "True"),
        [],
        "the kubelet",
        "main: ImagePullBackOff",
    ),
    "the image of an init container": (
        pod(
            "p",
            "c",
            status={
                "initContainerStatuses": [
                    {"name": "fetch", "state": {"waiting": {"reason": "ErrImagePull"}}}
                ],
                "containerStatuses": [
                    {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
                ],
            },
            **BOUND,
        ),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "True"),
        [],
        "the kubelet",
        "fetch: ErrImagePull, main: PodInitializing",
    ),
    "admission": (
        pod("p", status={"reason": "UnexpectedAdmissionError", "message": "no device"}, **BOUND),
        None,
        [],
        "the kubelet",
        "UnexpectedAdmissionError: no device",
    ),
    "its end": (deleting(), claim("c"), [], "the kubelet", "is being deleted"),
    "nothing: it runs": (
        pod("p", "c", status={"phase": "Running"}, **BOUND),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "True"),
        [],
        "",
        "runs on node a",
    ),
    "nothing: it has ended": (pod("p", "c", status={"phase": "Failed"}), None, [], "", "has ended"),
}


@pytest.mark.parametrize(("found", "its", "events", "who", "text"), CAUSES.values(), ids=CAUSES)
def test_a_step(
    found: Object, its: Object | None, events: Sequence[Object], who: str, text: str
) -> None:
    names = [each["name"] for each in found["spec"]["resourceClaims"]]
    step = step_of(found, dict.fromkeys(names, its), events, serves_claims=False)
    assert step.who.endswith(who)
    assert bool(step.who) == bool(who)
    assert text in step.text
    assert step.waits_for_devices == (who == "the allocator")


@pytest.mark.parametrize(
    ("scheduler", "who", "text"),
    [
        (
            "gcushare-scheduler",
            "the scheduler gcushare-scheduler, which is not this driver's",
            (
                "limits enflame.com/shared-gcu: 0/2 nodes are available: 2 have no room. Limits of "
                "this pod were left alone (docs/user/beside-other-plugins.md); if that scheduler "
                "is gone, create the pod again"
            ),
        ),
        (
            "default-scheduler",
            "kube-scheduler",
            "limits enflame.com/shared-gcu: 0/2 nodes are available: 2 have no room",
        ),
    ],
)
def test_limits_that_were_left_alone_where_the_driver_serves_claims(
    scheduler: str, who: str, text: str
) -> None:
    found = limited()
    found["spec"]["schedulerName"] = scheduler
    step = step_of(found, {}, [], serves_claims=True)
    assert (step.who, step.text) == (who, text)
