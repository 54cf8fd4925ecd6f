"""`kubectl gcu explain` and `plan` where kube-scheduler allocates (`allocator: scheduler`): its
devices have counters, by which a card is in one mode at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.scheduling.admin_access import NEEDS_FREE_CARD
from kubectl_gcu.scheduling.explain import explain_pod, pods_of_claim
from tests.control_plane.interfaces import (
    NET,
    PCIE_ROOT,
    card_and_interface,
    device_class,
    interface,
    other_slice,
    with_device,
)
from tests.unit.controller.allocator.build import CLASSES, allocated, claim, device, pool, request
from tests.unit.controller.webhook.test_amounts import entry
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.explained import explained_lines
from tests.unit.kubectl_gcu.manifests import single, spec, template, workload
from tests.unit.kubectl_gcu.scheduling.test_packing import controller
from tests.unit.kubectl_gcu.scheduling.test_plan import plan
from tests.unit.kubectl_gcu.server import NOW, Server

REFUSED = "0/2 nodes are available: 2 cannot allocate all claims."
TRIED = {"conditions": [{"type": "PodScheduled", "status": "False", "message": REFUSED}]}


def counted(mode: str, bus: int, *, switch: str = "") -> Object:
    """As the agent publishes a device for kube-scheduler."""
    counters = {"counterSet": f"card-{bus}", "counters": {"card": {"value": "1"}}}
    found = device(mode, bus, switch=switch)
    del found["taints"]
    return found | {"consumesCounters": [counters]}


def by_allocator(name: str) -> Object:
    """A pod of the controller that is ready."""
    found = controller()
    found["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    found["spec"]["containers"][0]["env"].append({"name": "GCU_ALLOCATOR", "value": name})
    return found


def cluster(
    *more: Object,
    held: str = "",
    claims: Sequence[Object] = (),
    slices: Sequence[Object] = (),
) -> Any:
    """Two nodes with a card each: that of a is held, and with `held` that of b in this mode.
    `slices` are another driver's, which has a class."""
    existing = [*claims, allocated("one", "a", "whole-0000-01-00-0"), claim("c")]
    if held:
        existing.append(allocated("two", "b", f"{held}-0000-02-00-0", consumed={"slices": "2"}))
    return Server(
        *(
            (RESOURCE_SLICES, each)
            for bus, name in enumerate("ab", start=1)
            for each in pool(name, [counted(mode, bus) for mode in ("whole", "shared")])
        ),
        *((RESOURCE_SLICES, each) for each in slices),
        *((DEVICE_CLASSES, each) for each in (*CLASSES.values(), device_class(NET))),
        *((NODES, node(name)) for name in "ab"),
        *((RESOURCE_CLAIMS, each) for each in existing),
        *((PODS, each) for each in (pod("p", "c", status=TRIED), *more)),
    )


@pytest.mark.parametrize("pods", [[], [by_allocator("scheduler")]], ids=["counters", "the chart"])
def test_a_card_that_is_in_another_mode_keeps_the_pod_waiting(pods: list[Object]) -> None:
    assert explained_lines(cluster(*pods, held="shared")) == [
        "pod default/p",
        "  asks:   1 of gcu.enflame.com",
        "  next:   the allocator, which is kube-scheduler",
        "  why:    2 cards: 1 held, 1 in shared mode; 1 requested",
        "  node:   a: 1 card: 1 held; 1 requested",
        "  node:   b: 1 card: 1 in shared mode; 1 requested",
        "  help:   it fits when any one of these claims ends: default/one, default/two",
    ]


def test_a_free_card_serves_the_pod() -> None:
    found = explained_lines(cluster(by_allocator("scheduler")))
    assert found[3:] == [
        f"  why:    kube-scheduler: {REFUSED}",
        "  help:   none is needed: node b has what it asks for",
    ]


def test_an_interface_of_another_driver_keeps_the_pod_waiting() -> None:
    asked = card_and_interface("both", "default", constraint={"matchAttribute": PCIE_ROOT})
    asked["spec"]["devices"]["constraints"][0]["requests"] = ["net"]
    asked["metadata"]["uid"] = "uid-both"
    user = with_device(claim("user"), "b", "pci-0000-00-00-1")
    waiting = pod("beside", "both", status=TRIED)
    interfaces = other_slice("b", [interface(0)])
    server = cluster(waiting, claims=(asked, user), slices=(interfaces,))
    found = explained_lines(server, "beside")
    missing = "not on one node with what is asked of other drivers (both/net)"
    assert found[3:] == [
        f"  why:    2 cards: 1 free, 1 held; 1 requested; {missing}",
        f"  node:   b: 1 card: 1 free; 1 requested; {missing}",
        "  node:   a: 1 card: 1 held; 1 requested",
        "  help:   it fits when any one of these claims ends: default/user",
    ]


def test_devices_that_are_still_kube_schedulers_are_none_of_the_controllers() -> None:
    found = explain_pod(cluster(by_allocator("controller")), "default", "p", now=NOW)
    assert found.verdict is not None
    assert "2 with counters, which only kube-scheduler allocates" in found.verdict.reason


def test_a_plan() -> None:
    server = cluster(by_allocator("scheduler"))
    found, planner = plan(single(spec(resourceClaimName="c")), server=server)
    assert found == ["pod default/p: node b: whole-0000-02-00-0"]
    assert planner.packing == (
        "packing: kube-scheduler allocates, and may choose another node and other cards"
    )


@pytest.mark.parametrize(
    ("allocator", "bus"),
    [("scheduler", 3), ("controller", 4)],
    ids=["the first of the slice", "the one without neighbours"],
)
def test_a_plan_has_the_devices_that_the_allocator_takes(allocator: str, bus: int) -> None:
    switches = {3: "0000:01:1f.0", 2: "0000:01:1f.0", 4: "0000:02:1f.0"}
    publish = counted if allocator == "scheduler" else device
    cards = [publish("whole", bus, switch=switch) for bus, switch in switches.items()]
    server = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", cards)),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, by_allocator(allocator)),
    )
    found, _ = plan(single(spec(resourceClaimName="c")), server=server)
    assert found == [f"pod default/p: node a: whole-0000-{bus:02x}-00-0"]


def test_the_pod_of_a_claim_that_kube_scheduler_made_for_limits() -> None:
    made = {"extendedResourceClaimStatus": {"resourceClaimName": "one"}}
    assert pods_of_claim(cluster(pod("q", status=made)), "default", "one") == ["q"]


def explained(*pods: Object, wanted: Object, held: str = "") -> list[str]:
    """Of pod q, whose claim is the wanted one."""
    server = cluster(*pods, by_allocator("scheduler"), held=held, claims=(wanted,))
    return explained_lines(server, "q")


ADMIN = claim("admin", [request(adminAccess=True)])


def test_administrative_access_needs_a_free_card() -> None:
    found = explained(pod("q", "admin", status=TRIED), wanted=ADMIN, held="shared")
    assert found[2:] == [
        "  next:   the allocator, which is kube-scheduler",
        f"  why:    2 cards: 1 held, 1 in shared mode; 1 requested; {NEEDS_FREE_CARD}",
        "  node:   a: 1 card: 1 held; 1 requested",
        "  node:   b: 1 card: 1 in shared mode; 1 requested",
        "  help:   it fits when any one of these claims ends: default/one, default/two",
    ]


def test_administrative_access_to_a_free_card() -> None:
    found = explained(pod("q", "admin", status=TRIED), wanted=ADMIN)
    assert found[-1] == "  help:   none is needed: node b has what it asks for"


def test_a_claim_that_the_pod_names_twice() -> None:
    """kube-scheduler counts it twice, and cannot reserve it twice."""
    twice = pod("q", "more", status=TRIED)
    [reference] = twice["spec"]["resourceClaims"]
    twice["spec"]["resourceClaims"].append(reference | {"name": "again"})
    found = explained(twice, wanted=claim("more"))
    assert found[2].startswith("  next:   the pod's author or an administrator")
    assert "names claim default/more 2 times in spec.resourceClaims" in found[3]
    assert len(found) == 4


OTHER: Any = {"schedulerName": "batch-scheduler"}


def test_a_scheduler_that_has_not_tried_the_pod() -> None:
    _, asks, who, why, remedy = explained(pod("q", "more", **OTHER), wanted=claim("more"))
    assert asks == "  asks:   1 of gcu.enflame.com"
    assert who == "  next:   the scheduler batch-scheduler"
    assert why.startswith("  why:    no scheduler has tried the pod; its schedulerName is batch-")
    assert remedy.startswith("  help:   start the scheduler batch-scheduler, or create the pod ")


def test_another_scheduler_allocates_for_its_pods() -> None:
    found = explained(pod("q", "more", status=TRIED, **OTHER), wanted=claim("more"))
    assert found[2] == "  next:   the allocator, which is the scheduler batch-scheduler"


GATED: Any = {"schedulingGates": [{"name": SCHEDULING_GATE}]}
BLOCKED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
}
BY_CONTROLLER = "  next:   the controller, which names a node for it and lifts the scheduling gate"


def test_a_gated_pod_is_the_controllers() -> None:
    found = explained(pod("q", "more", status=BLOCKED, **GATED), wanted=claim("more"))
    assert found[2:] == [
        BY_CONTROLLER,
        "  why:    the scheduling gate holds it back, and the controller has not decided about it",
        "  help:   none is needed: node b has what it asks for",
    ]


def test_a_gated_pod_of_another_scheduler_is_the_controllers() -> None:
    found = explained(pod("q", "more", status=BLOCKED, **GATED, **OTHER), wanted=claim("more"))
    assert found[2] == BY_CONTROLLER


def test_a_gated_pod_waits_for_room() -> None:
    waiting = pod("q", "more", status=BLOCKED, **GATED)
    found = explained(waiting, wanted=claim("more"), held="whole")
    assert found[2:4] == [BY_CONTROLLER, "  why:    2 cards: 2 held; 1 requested"]


def test_without_a_controller_nobody_lifts_a_gate() -> None:
    server = cluster(pod("q", "more", status=BLOCKED, **GATED), claims=(claim("more"),))
    found = explained_lines(server, "q")
    assert found[3:] == [
        (
            "  why:    no pod of the controller is ready, and without it nobody lifts the "
            "scheduling gate"
        ),
        (
            "  help:   node b has what it asks for; kubectl gcu doctor says what is wrong with the "
            "controller"
        ),
    ]


def test_a_named_pod_is_kube_schedulers() -> None:
    """The condition of the gate stays until the first try."""
    named = BLOCKED | {"nominatedNodeName": "b"}
    found = explained(pod("q", "more", status=named), wanted=claim("more"))
    assert found[2:4] == [
        "  next:   kube-scheduler",
        (
            "  why:    node b is named for it (status.nominatedNodeName), and kube-scheduler tries "
            "that first"
        ),
    ]


def test_a_name_that_kube_scheduler_did_not_follow() -> None:
    named = TRIED | {"nominatedNodeName": "b"}
    found = explained(pod("q", "more", status=named), wanted=claim("more"))
    assert found[2:4] == [
        "  next:   kube-scheduler",
        f"  why:    node b is named for it, and kube-scheduler has not taken it: {REFUSED}",
    ]


def by_memory(memory: str) -> Object:
    """A template for slices that have so much."""
    found = template("part", request(cls="shared-gcu.enflame.com"))
    found["spec"]["spec"]["devices"]["config"] = [entry(memory=memory)]
    return found


def test_a_claim_by_memory_is_planned_as_it_is_stored() -> None:
    of = single(spec(resourceClaimTemplateName="part"))
    found, _ = plan(by_memory("7Gi"), of, server=cluster())
    assert found == ["pod default/p: node b: shared-0000-02-00-0 (slices 2)"]
    [refused], _ = plan(by_memory("50Gi"), of, server=cluster())
    assert refused.startswith("pod default/p: does not fit: claim default/p-gcu, request gcu asks")


def test_a_claim_that_was_not_written_is_not_served() -> None:
    made = by_memory("7Gi")["spec"]
    unwritten = claim("old") | {"spec": made["spec"]}
    server = cluster(pod("q", "old", status=TRIED), claims=[unwritten])
    found = explained_lines(server, "q")
    assert "kube-scheduler reads capacity.requests alone; delete the claim" in found[3]


def gang(name: str, min_count: int) -> Object:
    policy = {"gang": {"minCount": min_count}}
    metadata = {"namespace": "default", "name": name}
    return {"kind": "PodGroup", "metadata": metadata, "spec": {"schedulingPolicy": policy}}


def members(of: str, count: int) -> Object:
    """A Job whose pods have a card each."""
    made = spec(resourceClaimTemplateName="card") | {"schedulingGroup": {"podGroupName": of}}
    return workload("Job", of, made, parallelism=count, completions=count)


@pytest.mark.parametrize(
    ("min_count", "count", "lines"),
    [
        pytest.param(
            2,
            2,
            ["does not fit: 1 of 2 pods fit together; short of 1 of "] * 2,
            id="all or none",
        ),
        pytest.param(1, 1, ["node b: whole-0000-02-00-0"], id="it fits"),
        pytest.param(
            1,
            2,
            [
                "node b: whole-0000-02-00-0",
                "does not fit: the others of its group have all that is free",
            ],
            id="more pods than the quorum",
        ),
        pytest.param(
            3, 2, ["does not fit: PodGroup default/train needs 3 pods"] * 2, id="too few pods"
        ),
    ],
)
def test_a_group_of_a_manifest_is_planned_as_a_whole(
    min_count: int, count: int, lines: list[str]
) -> None:
    server = cluster(by_allocator("scheduler"))
    manifest = [template("card", request()), gang("train", min_count), members("train", count)]
    found, _ = plan(*manifest, server=server)
    assert len(found) == count
    for number, line in enumerate(lines):
        assert found[number].startswith(f"pod default/train-{number}: {line}")


def test_a_member_of_a_group_that_asks_for_no_gcu() -> None:
    other = template("nic", request(cls="nic.example.com"))
    joined = {"schedulingGroup": {"podGroupName": "train"}}
    beside = single(spec(resourceClaimTemplateName="nic") | joined)
    manifest = [template("card", request()), other, gang("train", 2), members("train", 1), beside]
    found, _ = plan(*manifest, server=cluster(by_allocator("scheduler")))
    assert found == [
        "pod default/train-0: node b: whole-0000-02-00-0",
        "pod default/p: asks for no GCU",
    ]
