"""`kubectl gcu doctor` about pods that hold devices without a node, and about ended pods."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks.installation import Installation
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.kubectl_gcu.checks.installations import (
    CLAIM,
    found_in,
    ours,
    pod,
    with_pods,
    with_state,
)
from tests.unit.kubectl_gcu.checks.test_versions_and_policies import server


def held(name: str = "one", at: str = "2026-01-02T11:57:00Z", *users: str) -> Object:
    found = ours(allocated(name, "a", "whole-0000-01-00-0"), *users)
    found["status"]["allocation"]["allocationTimestamp"] = at
    return found


def waiting(name: str = "user", *claims: str, **spec: object) -> Object:
    named = [{"name": each, "resourceClaimName": each} for each in claims or ("one",)]
    return pod(name, "", "Pending", resourceClaims=named, **spec)


def installation(*pods: Object, claims: tuple[Object, ...] = (held(),)) -> Installation:
    return with_pods(*pods, of=with_state(claims=claims))


def failed(message: str) -> Object:
    found = waiting()
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    found["status"]["conditions"] = [condition | {"message": message}]
    return found


def sharing(phase: str, name: str = "short", node: str = "a") -> Object:
    return pod(name, node, phase, resourceClaims=[{"name": "gcu", "resourceClaimName": "one"}])


HELD = "held-unbound: pod default/user: it has held 1 device of node a for 180 s and is not bound: "
EXPLAIN = "kubectl gcu explain pod user --namespace default says what comes next."
GROUP = {"podGroupName": "g"}

FAULTS: dict[str, tuple[Installation, str]] = {
    "a scheduler that does not run": (
        installation(waiting(schedulerName="batch")),
        (
            f"{HELD}no scheduler has tried the pod; its schedulerName is batch, and perhaps no "
            "scheduler of that name is running. Start the scheduler batch, or create the pod "
            "again with the name of one that runs."
        ),
    ),
    "a scheduler that binds other pods": (
        installation(waiting(schedulerName="batch"), pod("other", schedulerName="batch")),
        (
            f"{HELD}no scheduler has tried the pod; its schedulerName is batch, and other pods of "
            "that scheduler are bound. See the log of the scheduler batch."
        ),
    ),
    "an error of kube-scheduler": (
        installation(failed("reservedFor[1]: Duplicate value.")),
        (
            f"{HELD}kube-scheduler failed to bind it: reservedFor[1]: Duplicate value. Correct "
            "what the message names; kube-scheduler tries the pod again by itself."
        ),
    ),
    "a gate of others": (
        installation(waiting(schedulingGates=[{"name": "x.io/hold"}])),
        f"{HELD}it is held back by x.io/hold. {EXPLAIN}",
    ),
    "another claim of it": (
        installation(waiting("user", "one", "two"), claims=(held(), claim("two"))),
        f"{HELD}its claim two has no devices yet. {EXPLAIN}",
    ),
    "its group": (
        installation(waiting(schedulingGroup=GROUP)),
        (
            f"{HELD}no scheduler has tried it; if PodGroup default/g is a gang, its pods are bound "
            "together; PodGroup default/g (existing: 1, with devices: 1, bound: 0). See how many "
            "pods it needs: minCount in kubectl get podgroup -o yaml."
        ),
    ),
    "an ended pod that names a claim in use": (
        installation(pod("user"), sharing("Succeeded"), claims=(CLAIM,)),
        (
            "pod-ended: claim default/one: pods use it, and short, ended, still names it: "
            "kube-controller-manager writes it many times a second (kubernetes#141274). Delete "
            "what has ended: kubectl delete pod --namespace default short."
        ),
    ),
}


@pytest.mark.parametrize(("found", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(found: Installation, line: str) -> None:
    [said] = found_in(found)
    assert said.startswith(line)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(
            installation(waiting(), claims=(held(at="2026-01-02T11:59:01Z"),)), id="not long"
        ),
        pytest.param(
            installation(waiting(), claims=(ours(allocated("one", "a", "whole-0000-01-00-0")),)),
            id="nobody knows since when",
        ),
        pytest.param(
            installation(
                pod("other"), waiting(), claims=(held("one", "2026-01-02T11:57:00Z", "other"),)
            ),
            id="others use the claim",
        ),
        pytest.param(
            installation(pod("user"), sharing("Running"), claims=(CLAIM,)), id="nobody has ended"
        ),
        pytest.param(
            installation(pod("user", phase="Succeeded"), sharing("Failed"), claims=(CLAIM,)),
            id="all have ended",
        ),
        pytest.param(
            installation(pod("user"), sharing("Failed", node=""), claims=(CLAIM,)),
            id="it was never bound",
        ),
    ],
)
def test_nothing_is_wrong(found: Installation) -> None:
    assert found_in(found) == []


def test_from_1_38_on_an_ended_pod_reserves_no_claim_again() -> None:
    ended = installation(pod("user"), sharing("Succeeded"), claims=(CLAIM,))
    assert not [line for line in found_in(server(38, ended)) if line.startswith("pod-ended")]


def test_of_many_pods_those_are_named_that_have_held_devices_for_the_longest_time() -> None:
    names = [f"p{number:02}" for number in range(23)]
    claims = tuple(held(name, f"2026-01-02T11:{30 + i}:00Z") for i, name in enumerate(names[:-1]))
    pods = [waiting(name, name) for name in names]
    found = installation(*pods, claims=(*claims, held(names[-1], "2026-01-02T11:00:00Z")))
    said = [line for line in found_in(found) if line.startswith("held-unbound")]
    assert said[0].startswith(
        "held-unbound: pod default/p22: it has held 1 device of node a for 60"
    )
    assert said[1].startswith("held-unbound: pod default/p00: ")
    [more] = said[20:]
    assert more.startswith("held-unbound: pods: 3 more hold devices and are not bound. kubectl gcu")


def test_many_ended_pods_are_cut() -> None:
    ended = [sharing("Failed", name) for name in ("z", "y", "x", "w", "v")]
    [said] = found_in(installation(pod("user"), *ended, claims=(CLAIM,)))
    assert "and v, w, x and 2 others, ended, still names it" in said
    assert said.endswith("kubectl delete pod --namespace default v w x.")
