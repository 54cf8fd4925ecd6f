"""Pods that wait for room behind the gate, and pods that wait for nobody."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.checks.gates import LIFT_ALL
from kubectl_gcu.checks.installation import Installation
from tests.unit.kubectl_gcu.checks.installations import (
    event,
    found_in,
    lease,
    part,
    pod,
    with_pods,
    with_state,
)
from tests.unit.kubectl_gcu.checks.test_programs_and_cards import FOR_SCHEDULER

LATE, IN_TIME = "2026-01-02T11:57:59Z", "2026-01-02T11:58:00Z"
GROUP_WAITS = event(
    "GcuAllocationFailed",
    "3 of 4 pods fit together",
    kind="PodGroup",
    namespace="default",
    name="training",
)
WAITS = event("GcuAllocationFailed", "1 card: 1 held", kind="Pod", uid="uid-user")


def gated(name: str = "user", created: str = LATE, *others: str) -> Object:
    gates = [{"name": each} for each in (SCHEDULING_GATE, *others)]
    found = pod(name, "", "Pending", schedulingGates=gates)
    found["metadata"]["creationTimestamp"] = created
    return found


def of_group(name: str, pod: str = "user") -> Object:
    found = gated(pod)
    found["spec"]["schedulingGroup"] = {"podGroupName": name}
    return found


def held_back(*pods: Object, of: Installation = FOR_SCHEDULER) -> Installation:
    return with_pods(*pods, of=of)


EXPIRED = {"gcu": lease("2026-01-02T11:00:00.000000Z")}
HELD = "gate-undecided: pods default/user: the scheduling gate gcu.enflame.com/allocation holds "
LIFT = f"To let kube-scheduler choose their nodes, lift the gate: {LIFT_ALL}"

FAULTS: dict[str, tuple[Installation, str]] = {
    "nothing was decided": (
        held_back(gated()),
        (
            f"{HELD}them back, and the controller has neither lifted it nor said why they wait. "
            f"See the controllers' logs. {LIFT}"
        ),
    ),
}


@pytest.mark.parametrize(("found", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(found: Installation, line: str) -> None:
    assert found_in(found) == [line]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(replace(held_back(gated()), leases=EXPIRED), id="an old lease"),
        pytest.param(replace(held_back(gated()), leases={"gcu": None}), id="no lease"),
        pytest.param(
            with_state(FOR_SCHEDULER, pods=(part("agent", "a"), gated())), id="no controller"
        ),
    ],
)
def test_without_a_leader_an_old_event_excuses_nobody(found: Installation) -> None:
    [line] = [each for each in found_in(replace(found, events=(WAITS,))) if each.startswith(HELD)]
    assert "them back, and no controller leads, so nobody lifts it. " in line


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(replace(held_back(gated()), events=(WAITS,)), id="it waits for room"),
        pytest.param(
            replace(held_back(of_group("training")), events=(GROUP_WAITS,)), id="its group waits"
        ),
        pytest.param(
            replace(held_back(of_group("g"), of_group("g", "other")), events=(WAITS,)),
            id="its group does not exist, which another pod's event says",
        ),
        pytest.param(held_back(gated("user", IN_TIME)), id="not for long"),
        pytest.param(held_back(gated("user", LATE, "x.io/hold")), id="held by others"),
        pytest.param(with_pods(gated()), id="the controller allocates"),
    ],
)
def test_nothing_is_wrong(found: Installation) -> None:
    assert found_in(found) == []


def test_another_group_that_waits_excuses_nobody() -> None:
    found = replace(held_back(of_group("other")), events=(GROUP_WAITS,))
    assert [line.partition(":")[0] for line in found_in(found)] == ["gate-undecided"]


def test_another_pod_that_waits_excuses_nobody() -> None:
    found = replace(held_back(gated(), gated("other")), events=(WAITS,))
    assert [line.partition(":")[0] for line in found_in(found)] == ["gate-undecided"]


def test_many_pods_are_cut() -> None:
    [line] = found_in(held_back(*(gated(name) for name in "edcba")))
    assert line.startswith("gate-undecided: pods default/a, default/b, default/c and 2 more: ")


def test_the_command_is_the_pages_and_a_shells() -> None:
    page = Path(__file__).parents[4] / "docs/user/scheduling-gate.md"
    assert f"```sh\n{LIFT_ALL}\n```\n" in page.read_text(encoding="utf-8")
    subprocess.run(["sh", "-n", "-c", LIFT_ALL], check=True)
