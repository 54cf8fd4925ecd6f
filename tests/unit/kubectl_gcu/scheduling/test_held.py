"""What `kubectl gcu explain` says about a pod that holds devices, or held them, without a node."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.kube.resources import EVENTS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.output import as_object
from kubectl_gcu.scheduling.held import NEXT, NEXT_OF_HELD_BACK, NEXT_OF_NOMINATED, held_devices
from tests.unit.controller.allocator.build import allocated, claim, request
from tests.unit.controller.world import pod, reserved
from tests.unit.kubectl_gcu.explained import explained_lines
from tests.unit.kubectl_gcu.server import CONTROLLER, NOW, by_controller, cluster, event

FOUR = tuple(f"whole-0000-0{bus}-00-0" for bus in range(3, 7))
SINCE = "2026-01-02T11:59:15Z"
SCHEDULER = "the scheduler batch-scheduler"


def held(name: str = "c", *devices: str, at: str = SINCE) -> Object:
    """A claim whose allocation nobody has reserved, of now less 45 s."""
    found = by_controller(allocated(name, "a", *(devices or FOUR)))
    if at:
        found["status"]["allocation"]["allocationTimestamp"] = at
    return found


def batch(**more: Any) -> Object:
    return pod("p", "c", schedulerName="batch-scheduler", **more)


def explained(*objects: Any) -> list[str]:
    return explained_lines(cluster(*objects))


def test_a_scheduler_that_may_not_run() -> None:
    assert explained((RESOURCE_CLAIMS, held()), (PODS, batch())) == [
        "pod default/p",
        f"  next:   {SCHEDULER}",
        f"  holds:  {', '.join(FOUR)} of node a for 45 s, since {SINCE}",
        (
            "  why:    no scheduler has tried the pod; its schedulerName is batch-scheduler, and "
            "perhaps no scheduler of that name is running"
        ),
        f"  help:   start {SCHEDULER}, or create the pod again with the name of one that runs",
        f"  then:   {NEXT}",
    ]


def test_the_controller_takes_nothing_back_that_kube_scheduler_allocated() -> None:
    theirs = allocated("c", "a", *FOUR)
    found = explained((RESOURCE_CLAIMS, theirs), (PODS, batch()))
    assert not [line for line in found if line.startswith("  then:")]


def test_a_scheduler_that_has_bound_other_pods() -> None:
    bound = pod("other", schedulerName="batch-scheduler", nodeName="b")
    found = explained((RESOURCE_CLAIMS, held()), (PODS, batch()), (PODS, bound))
    assert found[3].endswith("is batch-scheduler, and other pods of that scheduler are bound")
    assert found[4] == f"  help:   see the log of {SCHEDULER}"


def test_whether_it_has_bound_others_is_left_out_without_the_right_to_see_it() -> None:
    server = cluster((RESOURCE_CLAIMS, held()), (PODS, batch()), forbidden=[PODS])
    found = explained_lines(server)
    assert found[3].endswith("perhaps no scheduler of that name is running")


def test_an_allocation_whose_time_no_server_noted() -> None:
    found = explained((RESOURCE_CLAIMS, held("c", FOUR[0], at="")), (PODS, pod("p", "c")))
    assert found[2] == f"  holds:  {FOUR[0]} of node a"
    assert found[3].endswith(
        "no scheduler has tried the pod; its schedulerName is default-scheduler"
    )


def test_a_pod_that_is_being_bound_keeps_its_devices_longer() -> None:
    status = {"nominatedNodeName": "a"}
    found = explained((RESOURCE_CLAIMS, held()), (PODS, pod("p", "c", status=status)))
    assert found[-1] == f"  then:   {NEXT_OF_NOMINATED}"


def test_it_is_said_beside_a_gate_of_others_and_an_unallocated_claim() -> None:
    gated = pod("p", "c", schedulingGates=[{"name": "x.io/hold"}])
    found = explained((RESOURCE_CLAIMS, held()), (PODS, gated))
    assert found[2].startswith("  holds:  whole-0000-03-00-0, ")
    assert found[3] == "  why:    it is held back by x.io/hold"
    assert found[-1] == f"  then:   {NEXT_OF_HELD_BACK}"
    found = explained(
        (RESOURCE_CLAIMS, held()), (RESOURCE_CLAIMS, claim("d")), (PODS, pod("p", "c", "d"))
    )
    assert [line for line in found if line.startswith("  holds:  whole-0000-03-00-0, ")]
    assert "  next:   the allocator" in found


def admin() -> Object:
    return allocated("c", "a", FOUR[0], adminAccess=True)


@pytest.mark.parametrize(
    ("its", "user"),
    [
        pytest.param(reserved(held(), "other"), pod("p", "c"), id="others use the claim"),
        pytest.param(claim("c"), pod("p", "c"), id="it is not allocated"),
        pytest.param(held(), pod("p", "c", nodeName="a"), id="the pod is bound"),
        pytest.param(held(), pod("p", "c", status={"phase": "Failed"}), id="the pod has ended"),
        pytest.param(admin(), pod("p", "c"), id="administrator's access holds nothing"),
    ],
)
def test_a_pod_that_holds_nothing(its: Object, user: Object) -> None:
    assert held_devices(user, [its], NOW) is None


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2026-01-02T11:56:00Z", " for 240 s"),
        ("2026-01-02T11:50:00Z", " for 10 min"),
        ("2026-01-02T07:00:00Z", " for 5 h"),
        ("2026-01-02T12:00:09Z", " for 0 s"),
    ],
)
def test_how_long(at: str, text: str) -> None:
    found = held_devices(pod("p", "c"), [held(at=at)], NOW)
    assert found is not None
    assert found.time == text


def test_many_devices_and_the_first_of_several_claims() -> None:
    several = [held("c", *FOUR), held("d", "drs-0000-01-00-0", at="2026-01-02T11:59:59Z")]
    found = held_devices(pod("p", "c", "d"), several, NOW)
    assert str(found) == f"{', '.join(FOUR)} and 1 more of node a for 45 s, since {SINCE}"
    assert as_object(found) == {
        "devices": [*FOUR, "drs-0000-01-00-0"],
        "node": "a",
        "since": SINCE,
        "seconds": 45,
    }


NOTE = "it held whole-0000-03-00-0 of node a for 45 s: no scheduler has tried the pod"


def released(*later: Object) -> tuple[tuple[Any, Object], ...]:
    freed = event("GcuAllocationReleased", NOTE) | {"eventTime": "2026-01-02T11:59:00Z"}
    named = [each | {"metadata": {"name": f"e{i}"}} for i, each in enumerate((freed, *later))]
    return tuple((EVENTS, each) for each in named)


def test_a_pod_whose_devices_were_taken_back() -> None:
    two = claim("c", [request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})])
    found = explained((RESOURCE_CLAIMS, two), (PODS, batch()), *released())
    assert found[2:] == [
        "  next:   the allocator",
        "  why:    the controller took its devices back, because it was not bound",
        f"  freed:  2026-01-02T11:59:00Z: {NOTE}",
        f"  help:   start {SCHEDULER}, or create the pod again with the name of one that runs",
        (
            "  help:   node b has what it asks for; the controller allocates for the pod again "
            "after a pause"
        ),
    ]
    found = explained((RESOURCE_CLAIMS, claim("c")), (PODS, batch()), *released())
    assert "  why:    2 cards: 1 held, 1 in shared mode; 1 requested" in found
    assert f"  freed:  2026-01-02T11:59:00Z: {NOTE}" in found


@pytest.mark.parametrize(
    ("its", "later"),
    [
        (
            claim("c"),
            event("GcuAllocationFailed", "1 card") | {"eventTime": "2026-01-02T11:59:30Z"},
        ),
        (held(), event("Other", "") | {"eventTime": "2026-01-02T11:59:30Z"}),
    ],
    ids=["it waits for devices since", "it has devices again"],
)
def test_a_release_that_is_over(its: Object, later: Object) -> None:
    found = explained((RESOURCE_CLAIMS, its), (PODS, batch()), *released(later))
    assert not [line for line in found if line.startswith("  freed:")]


def test_a_pod_of_a_scheduler_that_the_controller_does_not_serve() -> None:
    serving = CONTROLLER | {
        "metadata": CONTROLLER["metadata"] | {"name": "newer", "creationTimestamp": SINCE},
        "spec": {
            "containers": [
                {
                    "name": "controller",
                    "env": [{"name": "GCU_SCHEDULER_NAMES", "value": "default-scheduler, ours"}],
                }
            ]
        },
    }
    two = claim("c", [request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})])
    found = explained((RESOURCE_CLAIMS, two), (PODS, batch()), (PODS, serving))
    assert found[2].startswith("  next:   the pod's author or an administrator")
    assert "schedulerName batch-scheduler" in found[3]
    assert "default-scheduler or ours" in found[3]
    found = explained((RESOURCE_CLAIMS, two), (PODS, pod("p", "c")), (PODS, serving))
    assert found[-1] == "  help:   none is needed: node b has what it asks for"


def test_a_gate_of_ours_goes_next() -> None:
    gated = pod("p", "c", schedulingGates=[{"name": SCHEDULING_GATE}])
    found = explained((RESOURCE_CLAIMS, held()), (PODS, gated))
    assert found[3] == "  why:    its claims are allocated; the scheduling gate goes next"
    assert found[-1] == f"  then:   {NEXT}"
