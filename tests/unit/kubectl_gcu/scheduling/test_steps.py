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


def templated(template: str = "t") -> Object:
    found = pod("p")
    found["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": template}]
    return found


def deleting() -> Object:
    found = pod("p", **BOUND)
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


def starting(phase: str, reason: str, message: str = "") -> Object:
    waiting = {"reason": reason, "message": message}
    container = {"name": "main", "state": {"waiting": waiting}}
    return pod("p", "c", status={"phase": phase, "containerStatuses": [container]}, **BOUND)


COMBINED = "(combined from similar events): "
CDI = "CDI device injection failed: unresolvable CDI devices gcu.enflame.com/claim=x"

EXCEEDED = (
    'PodResourceClaim gcu: create ResourceClaim : resourceclaims.resource.k8s.io "p-gcu-6vcl8" is '
    "forbidden: exceeded quota: claims, requested: count/resourceclaims.resource.k8s.io=1, used: "
    "count/resourceclaims.resource.k8s.io=1, limited: count/resourceclaims.resource.k8s.io=1"
)

CAUSES: dict[str, tuple[Object, Object | None, Sequence[Object], str, str]] = {
    "no devices": (
        pod("p", "c"),
        claim("c"),
        [event(NOT_ALLOCATED, "old"), event(NOT_ALLOCATED, f"{COMBINED}1 card: 1 held as a whole")],
        "the allocator",
        "1 card: 1 held as a whole",
    ),
    "no such claim": (pod("p", "c"), None, [], "whoever creates the claim", "does not exist"),
    "a quota": (
        templated(),
        None,
        [event("FailedResourceClaimCreation", EXCEEDED)],
        "whoever sets the namespace's quotas, or has claims in it",
        f"ResourceClaimTemplate t: {EXCEEDED}",
    ),
    "no template": (
        templated(),
        None,
        [event("FailedResourceClaimCreation", "template t not found")],
        "kube-controller-manager",
        "ResourceClaimTemplate t: template t not found",
    ),
    "a template that the controller makes": (
        templated("enflame-shared-gcu-2"),
        None,
        [event("FailedResourceClaimCreation", 'template "enflame-shared-gcu-2" not found')],
        "the controller, which makes the template",
        'ResourceClaimTemplate enflame-shared-gcu-2: template "enflame-shared-gcu-2" not found',
    ),
    "a claim of such a template": (
        templated("enflame-shared-gcu-2"),
        None,
        [],
        "kube-controller-manager",
        "ResourceClaimTemplate enflame-shared-gcu-2",
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
    "a container that does not start again": (
        starting("Running", "CreateContainerError", CDI),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "True"),
        [],
        "the kubelet",
        f"it runs on node a, but a container of it does not: main: CreateContainerError: {CDI}",
    ),
    "its card": (
        pod("p", "c", status={"phase": "Running"}, **BOUND),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "False", "efsmi hangs"),
        [],
        "whoever looks after the node",
        "it runs on node a, but efsmi hangs",
    ),
    "nothing: an image is pulled beside others": (
        starting("Running", "ContainerCreating"),
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
    assert COMBINED not in step.text
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


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (starting("Running", "CreateContainerError", CDI), "delete the pod: the CDI file of its "),
        (starting("Running", "CrashLoopBackOff", "back-off 5m0s"), ""),
        (starting("Pending", "CreateContainerError", CDI), "switch CDI on in the runtime, and "),
    ],
)
def test_what_helps_where_a_container_does_not_start(found: Object, remedy: str) -> None:
    its = prepared(allocated("c", "a", "whole-0000-01-00-0"), "True")
    step = step_of(found, {"c": its}, [], serves_claims=True)
    assert step.remedy.startswith(remedy)
    assert bool(step.remedy) == bool(remedy)


def test_what_helps_where_a_quota_is_used_up() -> None:
    step = step_of(
        templated(),
        {"c": None},
        [event("FailedResourceClaimCreation", EXCEEDED)],
        serves_claims=True,
    )
    assert step.remedy == (
        "end a pod whose claims count in the ResourceQuota claims, or ask the administrator for a "
        "larger one (docs/user/quota.md#quotas)"
    )


def owned_by(kind: str) -> Object:
    found = pod("p", "c", **BOUND)
    found["metadata"]["ownerReferences"] = [{"kind": kind, "name": "o", "controller": True}]
    return found


@pytest.mark.parametrize(
    ("found", "condition", "remedy"),
    [
        (owned_by("Job"), "PrepareFailed", "delete the pod, and its Job makes another one: the "),
        (pod("p", "c", **BOUND), "PrepareFailed", "delete the pod, and create it again: the "),
        (pod("p", "c", **BOUND), "CardUnhealthy", "delete the pod, and create it again: the "),
        (
            pod("p", "c", **BOUND),
            "OfANewerAgent",
            "the kubelet tries again every 60 to 90 s; docs/",
        ),
    ],
)
def test_what_helps_where_a_claim_cannot_be_prepared(
    found: Object, condition: str, remedy: str
) -> None:
    its = prepared(allocated("c", "a", "whole-0000-01-00-0"), "False", "efsmi ended with 1")
    its["status"]["devices"][0]["conditions"][0]["reason"] = condition
    step = step_of(found, {"c": its}, [], serves_claims=True)
    assert step.remedy.startswith(remedy)


def test_a_claim_that_is_only_not_prepared_yet_needs_nothing() -> None:
    its = allocated("c", "a", "whole-0000-01-00-0")
    step = step_of(pod("p", "c", **BOUND), {"c": its}, [], serves_claims=True)
    assert (step.who, step.remedy) == ("the agent of node a", "")
