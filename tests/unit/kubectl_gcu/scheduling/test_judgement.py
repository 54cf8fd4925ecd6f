"""What follows from the objects of a pod, and what the allocator's verdict adds. No API server."""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import replace
from typing import Any, Final

import pytest

from controller.cache.pod_groups import Member, PodGroup
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    CLASS_ADMIN,
    CLASS_WHOLE,
    DRIVER,
    RESOURCE_WHOLE,
    SCHEDULING_GATE,
)
from kubectl_gcu.cluster.observed_pod import ObservedPod
from kubectl_gcu.cluster.pod_groups import PodGroupProgress
from kubectl_gcu.cluster.to_decide import ObservedCluster
from kubectl_gcu.scheduling.admin_access import NEEDS_FREE_CARD
from kubectl_gcu.scheduling.explanation import Explanation
from kubectl_gcu.scheduling.held import NEXT
from kubectl_gcu.scheduling.judgement import judge_by_allocator, judge_by_objects
from kubectl_gcu.scheduling.refusal import MAKE_ROOM
from kubectl_gcu.scheduling.steps import Step
from tests.unit.controller.allocator.build import (
    ALL_CLASSES,
    CLASSES,
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.server import CONTROLLER, NOW, by_controller, event

GATE: Final = [{"name": SCHEDULING_GATE}]
CPU: Final = "0/2 nodes are available: 2 Insufficient cpu."
REFUSED: Final[Object] = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": CPU}
    ]
}
PERSON: Final = "the pod's author or an administrator: the end of other claims would not help"
FREED: Final = event("GcuAllocationReleased", "no scheduler bound it") | {
    "eventTime": "2026-01-02T11:59:00.123456Z"
}
WAITS: Final = Step("the allocator", "as the controller said", waits_for_devices=True)
Objects = dict[Resource, tuple[Object, ...]]


def observed(*claims: Object, events: tuple[Object, ...] = (), **status: Object) -> ObservedPod:
    """The pod `p` with these claims."""
    by_name: dict[str, Object | None] = {each["metadata"]["name"]: each for each in claims}
    return ObservedPod(pod("p", *by_name, **status), by_name, events)


def group(*, min_count: int = 2, bound: int = 0, exists: bool = True) -> PodGroupProgress:
    """Two pods, so many of which are bound; the others can be served."""
    counts = dict.fromkeys(Member, 0) | {Member.BOUND: bound, Member.COMPLETE: 2 - bound}
    view = PodGroup("default/g", "uid-g", exists, min_count, counts)
    return PodGroupProgress("default/g", 2, bound, bound, view)


def judged(found: ObservedPod) -> Explanation:
    return judge_by_objects(found, serves_claims=True, now=NOW)


def test_a_pod_without_gcus() -> None:
    assert judged(observed()) == Explanation(
        "default/p", Step("", "it asks for no GCU by claims or limits")
    )


@pytest.mark.parametrize(
    ("progress", "who", "shown"),
    [
        pytest.param(None, "the allocator", False, id="no group"),
        pytest.param(group(), "the allocator", True, id="a gang that waits for its pods"),
        pytest.param(group(bound=2), "the allocator", False, id="a gang that is bound"),
        pytest.param(
            group(min_count=3),
            "whoever creates the pods of PodGroup default/g",
            True,
            id="a gang that lacks a pod",
        ),
        pytest.param(group(exists=False), "whoever creates the PodGroup", True, id="no PodGroup"),
    ],
)
def test_what_the_group_of_a_waiting_pod_lacks(
    progress: PodGroupProgress | None, who: str, *, shown: bool
) -> None:
    found = judged(replace(observed(claim("c")), group=progress))
    assert found.step.who == who
    assert found.step.waits_for_devices is (who == "the allocator")
    assert found.group == (str(progress) if shown else "")


def test_a_pod_that_lacks_a_claim_waits_for_that_first() -> None:
    found = ObservedPod(pod("p", "c"), {"c": None}, group=group(exists=False))
    assert judged(found).step.who == "whoever creates the claim"


def test_a_pod_that_has_its_devices_waits_for_its_group() -> None:
    found = replace(observed(allocated("c", "a", "card")), group=group(min_count=3))
    assert judged(found).step.text.startswith("PodGroup default/g needs 3 pods")


def test_who_serves_limits() -> None:
    limits = {"limits": {RESOURCE_WHOLE: "1"}}
    found = ObservedPod(pod("p", containers=[{"name": "main", "resources": limits}]), {})
    by_claims, by_extender = (
        judge_by_objects(found, serves_claims=serves_claims, now=NOW).step.who
        for serves_claims in (True, False)
    )
    assert (by_claims, by_extender) == (
        "kube-scheduler",
        "kube-scheduler, which asks the driver's scheduler extender",
    )


FREED_TEXT: Final = "2026-01-02T11:59:00Z: no scheduler bound it"
LOG: Final = "see whether kube-scheduler runs, and its log"


@pytest.mark.parametrize(
    ("found", "freed", "remedy"),
    [
        pytest.param(observed(claim("c"), events=(FREED,)), FREED_TEXT, LOG, id="no scheduler"),
        pytest.param(
            observed(claim("c"), events=(FREED,), status=REFUSED), FREED_TEXT, "", id="tried since"
        ),
        pytest.param(
            observed(claim("c"), events=(FREED, event("GcuAllocationFailed", "no card"))),
            "",
            "",
            id="something else came after it",
        ),
        pytest.param(
            observed(allocated("c", "a", "card"), events=(FREED,)), "", LOG, id="allocated again"
        ),
    ],
)
def test_devices_that_were_taken_back(found: ObservedPod, freed: str, remedy: str) -> None:
    explanation = judged(found)
    assert (explanation.freed, explanation.step.remedy) == (freed, remedy)


@pytest.mark.parametrize(
    ("found", "device_names", "then"),
    [
        pytest.param(
            observed(by_controller(allocated("c", "a", "card"))), ("card",), NEXT, id="ours"
        ),
        pytest.param(
            observed(allocated("c", "a", "card")), ("card",), "", id="kube-scheduler allocated it"
        ),
        pytest.param(observed(claim("c")), None, "", id="nothing"),
        pytest.param(
            replace(
                observed(by_controller(allocated("c", "a", "card"))),
                pod=pod("p", "c", nodeName="a"),
            ),
            None,
            "",
            id="bound",
        ),
    ],
)
def test_what_it_holds(found: ObservedPod, device_names: tuple[str, ...] | None, then: str) -> None:
    explanation = judged(found)
    assert (explanation.holds and explanation.holds.devices) == device_names
    assert explanation.then == then


@pytest.mark.parametrize(
    ("found", "refusal", "remedy"),
    [
        pytest.param(
            observed(claim("c"), status=REFUSED), f"kube-scheduler: {CPU[:-1]}", "", id="it waits"
        ),
        pytest.param(
            observed(allocated("c", "a", "card"), status=REFUSED),
            "",
            MAKE_ROOM,
            id="as the step says",
        ),
        pytest.param(observed(claim("c")), "", "", id="not tried"),
        pytest.param(
            replace(observed(claim("c")), pod=pod("p", "c", nodeName="a", status=REFUSED)),
            "",
            "",
            id="bound",
        ),
        pytest.param(
            observed(claim("c"), status=REFUSED | {"phase": "Succeeded"}), "", "", id="ended"
        ),
    ],
)
def test_what_kube_scheduler_lacks_beside_devices(
    found: ObservedPod, refusal: str, remedy: str
) -> None:
    explanation = judged(found)
    assert (explanation.refusal, explanation.step.remedy) == (refusal, remedy)


@pytest.mark.parametrize(
    ("phase", "missing"),
    [("Pending", "no events; no group"), ("Succeeded", "")],
    ids=["it waits", "nobody has to act"],
)
def test_what_could_not_be_read(phase: str, missing: str) -> None:
    found = observed(claim("c"), status={"phase": phase})
    assert judged(replace(found, unread=("no events", "no group"))).missing == missing


def cluster(*more: tuple[Resource, Object], held: bool = False, counters: bool = False) -> Objects:
    """Node `a` has a card, which is `held` or free; with `counters` it is kube-scheduler's."""
    card = device("whole", 1)
    if counters:
        del card["taints"]
        card["consumesCounters"] = [{"counterSet": "card-1", "counters": {"card": {"value": "1"}}}]
    holder = [(RESOURCE_CLAIMS, allocated("holder", "a", card["name"]))] if held else []
    objects: defaultdict[Resource, tuple[Object, ...]] = defaultdict(tuple)
    for resource, each in (
        *((RESOURCE_SLICES, each) for each in pool("a", [card])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        *holder,
        *more,
    ):
        stored = copy.deepcopy(each)
        stored["metadata"].setdefault("uid", f"uid-{stored['metadata']['name']}")
        stored["metadata"]["resourceVersion"] = "1"
        objects[resource] += (stored,)
    return objects


RUNS: Final = (PODS, CONTROLLER)


def decided(
    objects: Objects, found: ObservedPod | None = None, *, freed: str = "", unread: str = ""
) -> Explanation:
    """About the pod `p`, which waits for a card with claim `c` if it is not given."""
    explanation = Explanation("default/p", WAITS, freed=freed)
    seen = found or observed(claim("c"))
    return judge_by_allocator(
        explanation, seen, ObservedCluster(objects, unread=(unread,) if unread else ())
    )


def test_where_the_cluster_cannot_be_read_the_step_stays() -> None:
    found = replace(observed(claim("c")), unread=("no events",))
    assert decided({}, found, unread="no slices") == Explanation(
        "default/p", WAITS, missing="no slices; no events"
    )


def test_a_card_is_free() -> None:
    found = decided(cluster(RUNS), unread="no volumes")
    assert found.verdict is not None
    assert (found.verdict.node, found.verdict.remedy) == ("a", "")
    assert (found.step, found.asks) == (WAITS, "1 of gcu.enflame.com")
    assert found.missing == "no volumes"


def test_a_card_is_held() -> None:
    found = decided(cluster(RUNS, held=True))
    assert found.verdict is not None
    assert (found.verdict.node, found.verdict.helps) == ("", ("default/holder",))
    assert found.step == WAITS


def test_volumes_count() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    objects = ObservedCluster(cluster(RUNS), volumes=({"nodeSelectorTerms": terms},))
    found = judge_by_allocator(Explanation("default/p", WAITS), observed(claim("c")), objects)
    assert found.verdict is not None
    assert (found.verdict.node, found.step.who) == ("", PERSON)


def configured(**parameters: object) -> Object:
    found = claim("c")
    typed = {"apiVersion": API_VERSION, "kind": KIND, **parameters}
    found["spec"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": typed}}]
    return found


@pytest.mark.parametrize(
    ("wrong", "reason", "remedy"),
    [
        pytest.param(
            claim("c", [request(), request("other", cls="gpu.example.com")]),
            "mixes devices",
            "",
            id="of two drivers",
        ),
        pytest.param(configured(cores=120), "cores", "correct the field", id="a wrong field"),
        pytest.param(
            claim("c", [request(count=8)]),
            "8 requested",
            "ask for less",
            id="more than there is",
        ),
    ],
)
def test_what_a_person_has_to_correct(wrong: Object, reason: str, remedy: str) -> None:
    found = decided(cluster(RUNS), observed(wrong))
    assert found.step == replace(WAITS, who=PERSON)
    assert found.verdict is not None
    assert reason in found.verdict.reason
    assert remedy in found.verdict.remedy
    assert bool(found.verdict.remedy) is bool(remedy)


@pytest.mark.parametrize(
    ("class_name", "who", "text"),
    [
        pytest.param(
            "gpu.example.com",
            "the allocator of another driver",
            "its unallocated claims ask for no device of this driver",
            id="another driver's",
        ),
        pytest.param(
            "none.example.com",
            "whoever creates DeviceClasses, or the pod's author",
            "the DeviceClass none.example.com does not exist; there are gpu.example.com",
            id="nobody's",
        ),
    ],
)
def test_claims_that_are_not_ours_to_allocate(class_name: str, who: str, text: str) -> None:
    metadata = {"name": "gpu.example.com", "uid": "uid", "resourceVersion": "1"}
    objects = cluster(RUNS) | {DEVICE_CLASSES: ({"metadata": metadata, "spec": {}},)}
    given = allocated("given", "a", "card")  # what its class is does not matter any more
    given["spec"]["devices"]["requests"] = [request(cls="gone.example.com")]
    found = decided(
        objects, observed(given, claim("c", [request(cls=class_name)])), unread="no volumes"
    )
    assert (found.step.who, found.step.text) == (who, text)
    assert not found.step.waits_for_devices
    assert (found.verdict, found.asks, found.missing) == (None, "", "")


ELSEWHERE: Final = "other-scheduler"


@pytest.mark.parametrize(
    ("waiting", "counters", "is_decided"),
    [
        pytest.param(pod("p", "c", schedulerName=ELSEWHERE), True, False, id="no try yet"),
        pytest.param(pod("p", "c", schedulerName=ELSEWHERE), False, True, id="ours to allocate"),
        pytest.param(pod("p", "c"), True, True, id="kube-scheduler's"),
        pytest.param(
            pod("p", "c", schedulerName=ELSEWHERE, status=REFUSED), True, True, id="it tried"
        ),
        pytest.param(
            pod("p", "c", schedulerName=ELSEWHERE, schedulingGates=GATE), True, True, id="our gate"
        ),
        pytest.param(
            pod("p", "c", schedulerName=ELSEWHERE, status={"nominatedNodeName": "a"}),
            True,
            True,
            id="named",
        ),
    ],
)
def test_another_scheduler_that_has_not_tried_the_pod(
    waiting: Object, *, counters: bool, is_decided: bool
) -> None:
    found = decided(cluster(RUNS, counters=counters), replace(observed(claim("c")), pod=waiting))
    assert (found.verdict is not None) is is_decided
    assert found.asks == "1 of gcu.enflame.com"
    if not is_decided:
        assert found.step.who == f"the scheduler {ELSEWHERE}"
        assert f"start the scheduler {ELSEWHERE}" in found.step.remedy


def test_where_kube_scheduler_allocates_it_is_next() -> None:
    found = decided(cluster(RUNS, counters=True, held=True))
    assert found.step == replace(WAITS, who="the allocator, which is kube-scheduler")


@pytest.mark.parametrize(
    ("counters", "cls", "count", "is_said"),
    [
        pytest.param(True, CLASS_ADMIN, 2, False, id="by the class of other devices"),
        pytest.param(True, CLASS_WHOLE, 2, True, id="too few free cards"),
        pytest.param(True, CLASS_WHOLE, 1, False, id="a free card"),
        pytest.param(True, "", 2, False, id="no administrator"),
        pytest.param(False, CLASS_WHOLE, 2, False, id="the controller needs no free card"),
    ],
)
def test_administrative_access_needs_a_free_card_of_kube_scheduler(
    count: int, cls: str, *, counters: bool, is_said: bool
) -> None:
    """`cls` is the class of a request for such access; empty for a request without it."""
    wanted = request(cls=cls or CLASS_WHOLE, count=count, adminAccess=bool(cls))
    objects = cluster(RUNS, (DEVICE_CLASSES, ALL_CLASSES[CLASS_ADMIN]), counters=counters)
    found = decided(objects, observed(claim("c", [wanted])))
    assert found.verdict is not None
    assert found.verdict.reason.endswith(NEEDS_FREE_CARD) is is_said


NOT_READY: Final = (PODS, CONTROLLER | {"status": {}})


@pytest.mark.parametrize(
    ("controllers", "counters", "gates", "lack"),
    [
        pytest.param([], False, [], "without it nothing is allocated", id="none"),
        pytest.param([NOT_READY], False, [], "without it nothing is allocated", id="not ready"),
        pytest.param([RUNS], False, [], "", id="one runs"),
        pytest.param([], True, GATE, "without it nobody lifts the scheduling gate", id="a gate"),
        pytest.param([], True, [], "", id="kube-scheduler needs none"),
    ],
)
def test_a_free_card_without_a_controller(
    controllers: list[tuple[Resource, Object]],
    gates: list[Object],
    lack: str,
    *,
    counters: bool,
) -> None:
    objects = cluster(*controllers, counters=counters)
    waiting = replace(observed(claim("c")), pod=pod("p", "c", schedulingGates=gates))
    found = decided(objects, waiting)
    assert found.verdict is not None
    assert found.verdict.node == "a"
    assert found.verdict.needs_person is bool(lack)
    assert lack in found.verdict.reason
    assert bool(found.verdict.reason) is bool(lack)
    assert ("doctor" in found.verdict.remedy) is bool(lack)
    assert (found.step.who == PERSON) is bool(lack)


@pytest.mark.parametrize(
    ("freed", "held", "waits_for_pause"),
    [
        pytest.param(FREED_TEXT, False, True, id="its devices were taken back"),
        pytest.param("", False, False, id="they were not"),
        pytest.param(FREED_TEXT, True, False, id="there is no free card"),
    ],
)
def test_after_a_release_the_controller_pauses(
    freed: str, *, held: bool, waits_for_pause: bool
) -> None:
    found = decided(cluster(RUNS, held=held), freed=freed)
    assert found.verdict is not None
    assert ("after a pause" in found.verdict.remedy) is waits_for_pause


def other(name: str, *, priority: int = 5, of: str = "", **more: Any) -> Object:
    return pod(name, of or f"c-{name}", priority=priority, **more)


@pytest.mark.parametrize(
    ("others", "named"),
    [
        pytest.param([other("q")], ["default/q"], id="of higher priority"),
        pytest.param([other("q", priority=-1)], [], id="of lower priority"),
        pytest.param([other("q", priority=0)], [], id="as urgent"),
        pytest.param(
            [other("q", priority=1), other("r", priority=9)],
            ["default/r", "default/q"],
            id="in order",
        ),
        pytest.param([other("q", nodeName="a")], [], id="bound"),
        pytest.param([other("q", status={"phase": "Failed"})], [], id="ended"),
        pytest.param([other("q", schedulingGates=[{"name": "x"}])], [], id="held back by others"),
        pytest.param([other("q", schedulingGates=GATE)], ["default/q"], id="held back by us"),
        pytest.param([other("q", of="missing")], [], id="without its claim"),
        pytest.param([other("q", of="holder")], [], id="it has its card"),
        pytest.param([other("q", of="gpu")], [], id="it wants another driver's"),
        pytest.param([other("q", of="eight")], [], id="it fits nowhere"),
    ],
)
def test_more_urgent_pods(others: list[Object], named: list[str]) -> None:
    claims = [
        *(claim(f"c-{name}") for name in "qr"),
        claim("gpu", [request(cls="gpu.example.com")]),
        claim("eight", [request(count=8)]),
    ]
    objects = cluster(
        RUNS,
        *((RESOURCE_CLAIMS, each) for each in claims),
        *((PODS, each) for each in (pod("p", "c"), *others)),
        held=True,
    )
    assert list(decided(objects).before) == named
