"""Why a pod that has its devices is bound to no node: words that `explain` and `doctor` share."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.scheduling.refusal import MAKE_ROOM
from kubectl_gcu.scheduling.unbound import why_unbound
from tests.unit.controller.world import pod

CPU = "0/2 nodes are available: 2 Insufficient cpu."
DUPLICATE = "status.reservedFor[1]: Duplicate value"


def tried(reason: str, message: str, **status: Any) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod("p", "c", status={"conditions": [condition], **status})


CASES: dict[str, tuple[Object, str, str, str]] = {
    "no condition": (
        pod("p", "c"),
        "kube-scheduler",
        "no scheduler has tried the pod; its schedulerName is default-scheduler",
        "see whether kube-scheduler runs, and its log",
    ),
    "another scheduler, no condition": (
        pod("p", "c", schedulerName="batch"),
        "the scheduler batch",
        (
            "no scheduler has tried the pod; its schedulerName is batch, and perhaps no scheduler "
            "of that name is running"
        ),
        "start the scheduler batch, or create the pod again with the name of one that runs",
    ),
    "the condition of a gate that went": (
        tried("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"),
        "kube-scheduler",
        "no scheduler has tried the pod; its schedulerName is default-scheduler",
        "see whether kube-scheduler runs, and its log",
    ),
    "an error": (
        tried("SchedulerError", DUPLICATE),
        "kube-scheduler",
        f"kube-scheduler failed to bind it: {DUPLICATE}",
        "correct what the message names; kube-scheduler tries the pod again by itself",
    ),
    "no node": (tried("Unschedulable", CPU), "kube-scheduler", CPU, MAKE_ROOM),
    "a gate of others": (
        pod("p", "c", schedulingGates=[{"name": "x.io/b"}, {"name": "x.io/a"}]),
        "whoever set the scheduling gate",
        "it is held back by x.io/a, x.io/b",
        "",
    ),
    "our gate": (
        pod("p", "c", schedulingGates=[{"name": SCHEDULING_GATE}]),
        "the controller",
        "its claims are allocated; the scheduling gate goes next",
        "",
    ),
    "a nominated node": (
        pod("p", "c", status={"nominatedNodeName": "a"}),
        "kube-scheduler",
        (
            "kube-scheduler chose node a for it (status.nominatedNodeName): it binds the pod there "
            "or preempts others for it, or it ended meanwhile"
        ),
        "wait; if nothing changes for a minute, see whether kube-scheduler runs, and its log",
    ),
    "a nominated node after a refusal": (
        tried("Unschedulable", CPU, nominatedNodeName="a"),
        "kube-scheduler",
        (
            "kube-scheduler chose node a for it (status.nominatedNodeName): it binds the pod there "
            f"or preempts others for it, or it ended meanwhile; its last message: {CPU}"
        ),
        "wait; if nothing changes for a minute, see whether kube-scheduler runs, and its log",
    ),
}


@pytest.mark.parametrize(("found", "who", "why", "remedy"), CASES.values(), ids=CASES)
def test_why(found: Object, who: str, why: str, remedy: str) -> None:
    reason = why_unbound(found)
    assert (reason.who, reason.why, reason.remedy) == (who, why, remedy)
