"""Faults of the driver's own pods, of cards, and of claims: each alone, in a healthy cluster."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES as CLASSES_RESOURCE
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold
from dra_driver.model.names import CLASS_WHOLE, TAINT_CHANGING
from kubectl_gcu import output
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.cluster.state import ClusterState
from kubectl_gcu.inventory.nodes import inventory
from tests.unit.controller.allocator.build import (
    CLASSES,
    HELD,
    UNHEALTHY,
    allocated,
    device,
    pool,
    resource_slice,
    taint_rule,
)
from tests.unit.controller.fake_api import written_by
from tests.unit.kubectl_gcu.checks.installations import (
    CLAIM,
    HEALTHY,
    STATE,
    by_limits,
    event,
    found_in,
    lease,
    node,
    ours,
    part,
    pod,
    with_objects,
    with_pods,
    with_state,
)


def unready(pod: Object, reason: str) -> Object:
    waiting = [{"name": "main", "state": {"waiting": {"reason": reason}}}]
    status = {"phase": "Pending", "conditions": [], "containerStatuses": waiting}
    return copy.deepcopy(pod) | {"status": status}


def unbound(pod: Object) -> Object:
    found = copy.deepcopy(pod)
    del found["spec"]["nodeName"]
    return found


def shares(name: str) -> Object:
    return ours(allocated(name, "a", "shared-0000-01-00-0", consumed={"slices": "4"}))


def agent_that_reported(*reasons: str) -> Installation:
    """An agent that is not ready; the events in their order."""
    events = [
        event(reason, f"{reason} says why", at=f"2026-01-02T11:0{i}:00Z", kind="Node", name="a")
        for i, reason in enumerate(reasons)
    ]
    pods = (unready(part("agent", "a"), ""), part("controller", "b"))
    return replace(with_state(pods=pods), events=tuple(reversed(events)))


def by(manager: str, of: Object = CLAIM) -> Object:
    changed = copy.deepcopy(of)
    changed["metadata"]["managedFields"] = written_by(manager)
    return changed


def not_reported() -> Object:
    claim = copy.deepcopy(CLAIM)
    del claim["status"]["devices"]
    return claim


def differently_reported() -> Object:
    claim = copy.deepcopy(CLAIM)
    claim["status"]["devices"][0]["device"] = "whole-0000-09-00-0"
    return claim


def node_of(name: str, ready: str) -> Object:
    found = node(name, gcu_count="1")
    found["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    return found


def unknown_to_its_agent(started: str, phase: str = "Running") -> Installation:
    """Its event of 11:30 names a claim; the pod that has it now started then."""
    note = "containers use claims whose records the agent lost: default/one; a container"
    user = pod("user", phase=phase)
    user["status"]["startTime"] = started
    reported = event("GcuClaimsUnknown", note, kind="Node", name="a")
    return replace(with_pods(user, of=with_state(claims=(CLAIM,))), events=(reported,))


FAULTS: dict[str, tuple[Installation, str]] = {
    "no controller": (
        with_state(pods=(part("agent", "a"),)),
        "no-controller: controller: it has no pod, and without it nothing is allocated. Install ",
    ),
    "a controller that is not ready": (
        with_state(pods=(part("agent", "a"), unready(part("controller", "b"), "ErrImagePull"))),
        "pod-not-ready: pod gcu/controller-b on node b: it is not ready (ErrImagePull). See ",
    ),
    "an agent that said why": (
        agent_that_reported("GcuServing", "GcuNotServing"),
        "pod-not-ready: pod gcu/agent-a on node a: it is not ready (GcuNotServing says why), and ",
    ),
    "an agent that served since": (
        agent_that_reported("GcuNotServing", "GcuServing"),
        "pod-not-ready: pod gcu/agent-a on node a: it is not ready (Pending), and what depends ",
    ),
    "no lease": (
        replace(HEALTHY, leases={"gcu": None}),
        "no-lease: Lease gcu/gcu-dra-controller: it is not there: no controller has ever led. ",
    ),
    "nobody leads": (
        replace(HEALTHY, leases={"gcu": lease("2026-01-02T11:58:00.000000Z")}),
        "nobody-leads: Lease gcu/gcu-dra-controller: no controller has led for 120 s. ",
    ),
    "a lease that was given back": (
        replace(HEALTHY, leases={"gcu": lease(holder="")}),
        "nobody-leads: Lease gcu/gcu-dra-controller: no controller has led for 10 s. ",
    ),
    "no agent": (
        with_state(pods=(part("controller", "b"),), slices=()),
        "no-agent: agent: no node runs one, so no card is offered. Label the nodes that have GCUs",
    ),
    "an agent that offers nothing": (
        with_pods(part("agent", "b")),
        "no-cards: node b: its agent is ready and offers no card. See kubectl logs",
    ),
    "cards without an agent": (
        with_state(pods=(part("controller", "b"), unbound(part("agent", "a")))),
        "cards-without-agent: node a: its cards are offered, and no agent runs there: pods with ",
    ),
    "a kubelet that does not report": (
        with_state(nodes=(node_of("a", "Unknown"), node_of("b", "False"))),
        "node-not-ready: node a: its kubelet is not ready: pods with GCUs neither start nor end. ",
    ),
    "no class": (
        with_objects(
            CLASSES_RESOURCE, *(each for name, each in CLASSES.items() if name != CLASS_WHOLE)
        ),
        "class-missing: DeviceClass gcu.enflame.com: it does not exist, so no claim can name it. ",
    ),
    "an unhealthy card": (
        with_state(
            slices=tuple(pool("a", [device("whole", 1, taints=[UNHEALTHY])])),
            claims=(ours(allocated("one", "a", "whole-0000-01-00-0")),),
        ),
        "card-problem: node a, card 0000:01:00.0: unhealthy: lost; held by default/one. docs/user/",
    ),
    "more than there is": (
        with_state(claims=(shares("one"), shares("two"))),
        (
            "over-allocated: node a, card 0000:01:00.0: more is allocated than there is: 8 of 6, "
            "by default/one, default/two. "
        ),
    ),
    "more than there is, by limits": (
        by_limits(Hold("uid-1", "main", 4), Hold("uid-2", "main", 4)),
        (
            "over-allocated: node a, card 0000:01:00.0: more is allocated than there is: 8 of 6, "
            "by pod of UID uid-1, pod of UID uid-2. Delete one of these pods."
        ),
    ),
    "two modes": (
        with_state(claims=(shares("one"), ours(allocated("w", "a", "whole-0000-01-00-0")))),
        "over-allocated: node a, card 0000:01:00.0: more is allocated than there is: ",
    ),
    "a slice that is missing": (
        with_state(
            slices=(
                resource_slice("a", [device("whole", 1)], generation=1),
                resource_slice("a", [device("whole", 1)], generation=2, count=2),
            )
        ),
        "incomplete-pool: node a: it has 1 of 2 ResourceSlices, so nothing is allocated. The ",
    ),
    "another plugin": (
        with_state(nodes=(node("a", gcu_count="1", shared_gcu="6"), node("b", gcu_memory="0"))),
        "other-plugin: node a: another device plugin offers enflame.com/shared-gcu of the same ",
    ),
    "another plugin without DRA": (
        with_state(nodes=(node("a", gcu_count="1"), node("b", gcu="1", gcu_memory="9"))),
        "other-plugin: node b: another device plugin offers enflame.com/gcu-memory of the same ",
    ),
    "a card that a rule taints": (
        with_state(rules=(taint_rule("r", {}, {"key": "x/drain", "effect": "NoExecute"}),)),
        (
            "card-problem: node a, card 0000:01:00.0: drain by DeviceTaintRule r. Delete the "
            "rule when the card may be used: kubectl delete devicetaintrule r."
        ),
    ),
    "a pod that is gone": (
        with_state(claims=(CLAIM,)),
        "pod-gone: claim default/one: it is reserved for user, which is gone. ",
    ),
    "a node that is gone": (
        replace(with_pods(pod("user"), of=with_state(claims=(CLAIM,), nodes=(node("b"),)))),
        "node-gone: claim default/one: it has devices of node a, which is gone. Delete its pods.",
    ),
    "devices that the agent did not report": (
        with_pods(pod("user"), of=with_state(claims=(not_reported(),))),
        "not-reported: claim default/one: its pod runs, and the agent has not reported its devic",
    ),
    "claims whose records are lost": (
        unknown_to_its_agent("2026-01-02T11:00:00Z"),
        (
            "unknown-claims: node a: pods run with default/one, and its agent does not know these "
            "claims, because its records were lost. The pods run and can end, but a container that "
        ),
    ),
    "devices that are another claim's": (
        with_pods(pod("user"), of=with_state(claims=(differently_reported(),))),
        "report-differs: claim default/one: its status has whole-0000-09-00-0, which it was not ",
    ),
    "another allocator": (
        with_pods(pod("user"), of=with_state(claims=(by("kube-scheduler"),))),
        "foreign-allocation: claim default/one: kube-scheduler allocated its devices, past the ",
    ),
}


@pytest.mark.parametrize(("installation", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(installation: Installation, line: str) -> None:
    [found] = found_in(installation)
    assert found.startswith(line)


def test_a_node_that_is_gone_has_no_agent_to_look_for() -> None:
    """Its slices are gone with it."""
    gone = with_state(
        slices=tuple(pool("b", [device("whole", 1)])),
        claims=(CLAIM,),
        nodes=(node("b"),),
        pods=(part("agent", "b"), part("controller", "b"), pod("user")),
    )
    assert [each.partition(":")[0] for each in found_in(gone)] == ["card-problem", "node-gone"]


def scheduler_allocates() -> Installation:
    its_lease = lease()
    its_lease["metadata"]["annotations"] = {"gcu.enflame.com/allocator": "scheduler"}
    found = with_pods(pod("user"), of=with_state(claims=(by("kube-scheduler"),)))
    return replace(found, leases={"gcu": its_lease})


def ending(pod: Object) -> Object:
    found = unready(pod, "")
    found["metadata"]["deletionTimestamp"] = "2026-01-02T11:59:00Z"
    return found


def without_slices(*claims: Object) -> Installation:
    unread = {RESOURCE_SLICES: "you may not list resourceslices"}
    return with_pods(pod("user"), of=with_state(slices=(), claims=claims, missing=unread))


@pytest.mark.parametrize(
    "installation",
    [
        pytest.param(HEALTHY, id="claims"),
        pytest.param(by_limits(), id="limits"),
        pytest.param(with_pods(pod("user"), of=with_state(claims=(CLAIM,))), id="a claim in use"),
        pytest.param(
            with_pods(pod("user", phase="Pending"), of=with_state(claims=(not_reported(),))),
            id="a pod that starts",
        ),
        pytest.param(unknown_to_its_agent("2026-01-02T11:31:00Z"), id="another pod since"),
        pytest.param(unknown_to_its_agent("2026-01-02T11:00:00Z", "Succeeded"), id="it has ended"),
        pytest.param(scheduler_allocates(), id="kube-scheduler allocates"),
        pytest.param(replace(HEALTHY, objects={}, leases={}), id="what may not be read"),
        pytest.param(with_state(nodes=STATE.nodes[:1]), id="a node without cards"),
        pytest.param(with_pods(ending(part("agent", "b"))), id="an agent that ends"),
        pytest.param(without_slices(), id="slices that may not be read"),
        pytest.param(without_slices(CLAIM), id="slices that may not be read, and a held card"),
    ],
)
def test_nothing_is_wrong(installation: Installation) -> None:
    assert found_in(installation) == []


def test_after_a_switch_to_the_controller_a_held_card_is_no_fault() -> None:
    """kube-scheduler gave it, and it changes with its last claim."""
    counters = {"consumesCounters": [{"counterSet": "0000-01", "counters": {"card": {}}}]}
    changing = {"key": TAINT_CHANGING, "effect": "NoSchedule"}
    devices = [device(mode, 1, taints=[changing]) | counters for mode in ("whole", "shared")]
    switched = with_state(
        slices=tuple(pool("a", devices)), claims=(by("kube-scheduler"),), pods=STATE.pods
    )
    [line] = found_in(with_pods(pod("user"), of=switched))
    assert line == (
        "card-problem: node a, card 0000:01:00.0: changing; held by default/one. Nothing is to be "
        "done: when its last claim ends, it is offered as configured "
        "(docs/user/sharing.md#what-cards-are-offered-as)."
    )


def test_a_card_that_a_deleted_claim_still_holds() -> None:
    """No claim is its holder any more, so the taint alone says that it is not free."""
    slices = pool("a", [device(mode, 1, taints=[HELD]) for mode in ("whole", "shared")])
    [line] = found_in(with_state(slices=tuple(slices), claims=()))
    assert line == (
        "card-problem: node a, card 0000:01:00.0: held: deleted-claim. "
        "docs/user/health.md#when-a-deleted-claim-still-holds-a-card says what to do."
    )
    shown, _ = inventory(ClusterState(tuple(slices)))
    assert "held: deleted-claim" in output.table(shown, wide=False, colour=False)


def counted(mode: str, bus: int) -> Object:
    """A device as it is published for kube-scheduler."""
    counters = {"consumesCounters": [{"counterSet": f"0000-{bus:02}", "counters": {"card": {}}}]}
    return device(mode, bus) | counters | {"taints": []}


FOR_SCHEDULER = with_state(
    slices=tuple(pool("a", [counted("whole", 1), counted("shared", 1)])),
    pods=(part("agent", "a"), part("controller", "b", GCU_ALLOCATOR="scheduler")),
)


def test_without_a_controller_kube_scheduler_allocates_all_the_same() -> None:
    [line] = found_in(with_state(FOR_SCHEDULER, pods=(part("agent", "a"),)))
    assert line == (
        "no-controller: controller: it has no pod, and without it pods with new limits get no "
        "claim; kube-scheduler allocates as before, and chooses nodes alone. Install the chart, or "
        "scale its Deployment up."
    )
    [line] = found_in(replace(FOR_SCHEDULER, leases={"gcu": lease("2026-01-02T11:00:00.000000Z")}))
    assert line.startswith("nobody-leads: Lease gcu/gcu-dra-controller: no controller has led for ")
    assert line.endswith("kube-scheduler allocates as before, and chooses nodes alone.")


def test_what_kube_scheduler_granted_twice() -> None:
    twice = [ours(allocated(name, "a", "whole-0000-01-00-0")) for name in "xy"]
    claims = tuple(by("kube-scheduler", each) for each in twice)
    [line] = found_in(with_state(FOR_SCHEDULER, claims=claims))
    assert line == (
        "over-allocated: node a, card 0000:01:00.0: more is allocated than there is: 2 of 1, by "
        "default/x, default/y. Delete one of these claims with its pods, and see whether "
        "kube-scheduler is 1.36.3 or newer (docs/user/which-allocator.md)."
    )
