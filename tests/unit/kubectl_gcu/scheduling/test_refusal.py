"""What `kubectl gcu explain` repeats of what kube-scheduler has against nodes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dra_driver.kube.resources import EVENTS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from kubectl_gcu.scheduling.held import NEXT_OF_REFUSED
from kubectl_gcu.scheduling.refusal import MAKE_ROOM, against_nodes, refusal
from kubectl_gcu.scheduling.steps import step_of
from tests.unit.controller.allocator.build import allocated, claim, request
from tests.unit.controller.world import pod, unschedulable
from tests.unit.kubectl_gcu.explained import explained_lines
from tests.unit.kubectl_gcu.server import by_controller, cluster

PREEMPTION = (
    " still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
    "scheduling."
)
CPU = "0/2 nodes are available: 2 Insufficient cpu"
ONE_OF_EACH = (
    "0/2 nodes are available: 1 Insufficient cpu, 1 resourceclaim not available on the node"
)
OF_ALLOCATOR = (
    "0/3 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node "
    "affinity/selector, 1 node(s) had untolerated taint(s)"
)
OF_DAEMON = (
    "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't satisfy plugin(s) "
    "[NodeAffinity]"
)
NO_CLASS = "0/2 nodes are available: request gcu: device class shared-gcu.enflame.co does not exist"
CLAIMS = "0/2 nodes are available: 2 cannot allocate all claims."


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (f"{CPU}.{PREEMPTION}", CPU),
        (f"{ONE_OF_EACH}.{PREEMPTION}", ONE_OF_EACH),
        (f"{CLAIMS}{PREEMPTION}", ""),
        (f"{OF_ALLOCATOR}.{PREEMPTION}", ""),
        (f"{OF_DAEMON}.{PREEMPTION}", ""),
        (f"{NO_CLASS}.{PREEMPTION}", ""),
        ("0/2 nodes are available: resource claim default/c is in the process of being", ""),
        ("Scheduling is blocked due to non-empty scheduling gates", ""),
        ("", ""),
    ],
)
def test_what_is_against_nodes(message: str, words: str) -> None:
    assert against_nodes(message) == words


def failed_scheduling(note: str, minute: int) -> Object:
    return {
        "metadata": {"name": f"p.{minute}"},
        "reason": "FailedScheduling",
        "note": note,
        "regarding": {"name": "p"},
        "eventTime": f"2026-01-01T00:{minute:02}:00Z",
    }


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (
            [failed_scheduling(CPU, 1), failed_scheduling(CLAIMS, 2)],
            f"kube-scheduler at 2026-01-01T00:01:00Z: {CPU}",
        ),
        ([failed_scheduling(CLAIMS, 2)], f"kube-scheduler: {CPU}"),
        ([], f"kube-scheduler: {CPU}"),
    ],
)
def test_events_are_more_than_the_condition(events: Sequence[Object], said: str) -> None:
    assert refusal({"message": CPU}, events) == said


def refused(asked: str) -> list[str]:
    """What `explain` says about a pod that asks for so many slices, whose node was refused; node b
    has four."""
    wanted = claim("c", [request(cls="shared-gcu.enflame.com", capacity={"slices": asked})])
    server = cluster(
        (RESOURCE_CLAIMS, wanted),
        (PODS, pod("p", "c")),
        (EVENTS, failed_scheduling(f"{CPU}.{PREEMPTION}", 1)),
        (EVENTS, failed_scheduling(CLAIMS, 2)),
    )
    return explained_lines(server)


def test_devices_that_are_there_do_not_help_where_cpu_is_missing() -> None:
    *_, also, help_ = refused("2")
    assert also == f"  also:   kube-scheduler at 2026-01-01T00:01:00Z: {CPU}"
    assert help_ == f"  help:   node b has the GCUs; {MAKE_ROOM}"


def test_it_is_said_beside_what_the_allocator_says() -> None:
    found = refused("5")
    lacks = "kube-scheduler lacks something that is no GCU"
    assert f"  next:   the allocator, and a person: {lacks}" in found
    assert f"  also:   kube-scheduler at 2026-01-01T00:01:00Z: {CPU}" in found
    assert found[-1].startswith("  help:   it fits when any one of these claims ends: ")


@pytest.mark.parametrize(("message", "remedy"), [(CPU, MAKE_ROOM), (CLAIMS, "")])
def test_what_helps_a_pod_whose_claims_are_allocated(message: str, remedy: str) -> None:
    status = unschedulable()
    status["conditions"][0]["message"] = message
    its = allocated("c", "a", "whole-0000-01-00-0")
    step = step_of(pod("p", "c", status=status), {"c": its}, [], serves_claims=True)
    assert (step.who, step.remedy) == ("kube-scheduler", remedy)


def test_a_class_that_does_not_exist_is_no_lack_of_room() -> None:
    server = cluster(
        (RESOURCE_CLAIMS, claim("c", [request(cls="shared-gcu.enflame.co")])),
        (PODS, pod("p", "c")),
        (EVENTS, failed_scheduling(f"{NO_CLASS}.{PREEMPTION}", 1)),
    )
    found = explained_lines(server)
    assert [line for line in found if line.startswith(("  also:", "  help:"))] == [
        (
            "  help:   did you mean shared-gcu.enflame.com? Create the pod again with a claim, or "
            "a claim template, that names a DeviceClass that exists"
        )
    ]


def test_it_is_said_until_kube_scheduler_has_tried_the_pod_again() -> None:
    status = unschedulable()
    status["conditions"][0]["message"] = CLAIMS
    held = allocated("c", "b", "shared-0000-02-00-0", consumed={"slices": "1"})
    server = cluster(
        (RESOURCE_CLAIMS, by_controller(held)),
        (PODS, pod("p", "c", status=status)),
        (EVENTS, failed_scheduling(f"{CPU}.{PREEMPTION}", 1)),
    )
    assert explained_lines(server) == [
        "pod default/p",
        "  next:   kube-scheduler",
        "  holds:  shared-0000-02-00-0 of node b",
        f"  why:    {CLAIMS}",
        f"  also:   kube-scheduler at 2026-01-01T00:01:00Z: {CPU}",
        f"  help:   {MAKE_ROOM}",
        f"  then:   {NEXT_OF_REFUSED}",
    ]
