"""Every example, applied as its README says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_PCIE_SWITCH
from tests.cluster.workloads import execute, wait_for_pods
from tests.e2e.events import wait_for_note
from tests.e2e.installation import CHECKOUT, Installation
from tests.e2e.seen import assert_sees_what_was_granted, cards, granted

EXAMPLES = CHECKOUT / "examples"

Pods = dict[str, dict[str, Any]]
Amounts = list[tuple[Mode, int | None]]


def amounts(driver: Installation, pod: dict[str, Any]) -> Amounts:
    return [(grant.mode, grant.amount) for grant in granted(driver, pod)]


def one_card(driver: Installation, pods: Pods) -> None:
    assert amounts(driver, pods["one-card"])[0][0] is Mode.WHOLE
    assert len(cards(driver, pods["one-card"])) == 1


def two_cards_one_switch(driver: Installation, pods: Pods) -> None:
    pod = pods["two-cards-one-switch"]
    switch_of = {
        device["attributes"]["card"]["string"]: device["attributes"][ATTR_PCIE_SWITCH]["string"]
        for published in driver.slices()
        if published["spec"]["nodeName"] == pod["spec"]["nodeName"]
        for device in published["spec"]["devices"]
    }
    found = cards(driver, pod)
    assert len(found) == 2
    assert len({switch_of[str(card)] for card in found}) == 1


def one_claim_two_containers(driver: Installation, pods: Pods) -> None:
    pod = pods["one-claim-two-containers"]
    assert len(pod["spec"]["containers"]) == 2
    assert len(cards(driver, pod)) == 1


def deployment_with_shm(driver: Installation, pods: Pods) -> None:
    assert len(pods) == 2
    held = {(pod["spec"]["nodeName"], card) for pod in pods.values() for card in cards(driver, pod)}
    assert len(held) == 2
    name, pod = next(iter(pods.items()))
    mounts = execute(driver.cluster, pod["metadata"]["namespace"], name, "cat", "/proc/mounts")
    [shm] = [line for line in mounts.splitlines() if " /dev/shm " in line]
    assert f"size={8 << 20}k" in shm


def shared_slices(driver: Installation, pods: Pods) -> None:
    assert amounts(driver, pods["shared-slices"]) == [(Mode.SHARED, 2)]


def portable_amount(driver: Installation, pods: Pods) -> None:
    assert pods.keys() == {"by-capacity", "by-config", "by-both"}
    assert all(amounts(driver, pod) == [(Mode.SHARED, 2)] for pod in pods.values())


def drs_two_sizes(driver: Installation, pods: Pods) -> None:
    small, large = pods["drs-size-1"], pods["drs-size-3"]
    assert amounts(driver, small) == [(Mode.DRS, 1)]
    assert amounts(driver, large) == [(Mode.DRS, 3)]
    assert small["spec"]["nodeName"] == large["spec"]["nodeName"]
    assert cards(driver, small) == cards(driver, large)


def drs_size_between(driver: Installation, pods: Pods) -> None:
    assert amounts(driver, pods["drs-size-between"]) == [(Mode.DRS, 3)]


def drs_two_containers(driver: Installation, pods: Pods) -> None:
    pod = pods["drs-two-containers"]
    assert amounts(driver, pod) == [(Mode.DRS, 1), (Mode.DRS, 3)]
    assert len(cards(driver, pod)) == 1


def one_claim_two_pods(driver: Installation, pods: Pods) -> None:
    assert amounts(driver, pods["first"]) == [(Mode.SHARED, 3)]
    assert granted(driver, pods["first"]) == granted(driver, pods["second"])


def three_modes(driver: Installation, pods: Pods) -> None:
    for name, mode in (("whole", Mode.WHOLE), ("shared", Mode.SHARED), ("drs", Mode.DRS)):
        assert [grant.mode for grant in granted(driver, pods[name])] == [mode]
    held = {(pod["spec"]["nodeName"], card) for pod in pods.values() for card in cards(driver, pod)}
    assert len(held) == 3


def waiting(driver: Installation, pods: Pods) -> None:
    [namespace] = {pod["metadata"]["namespace"] for pod in pods.values()}
    scope = f"--namespace={namespace}"
    driver.cluster.kubectl("apply", scope, f"--filename={EXAMPLES / 'waiting' / 'late.yaml'}")
    wait_for_note(driver, namespace, "Pod", "GcuAllocationFailed", "12 cards: 12 held as a whole")
    driver.cluster.kubectl("delete", scope, "daemonset", "every-card")
    wait_for_pods(driver.cluster, namespace, "late")
    late = driver.cluster.get("pod", "late", scope)
    assert_sees_what_was_granted(driver, late)


CHECKS: dict[str, Callable[[Installation, Pods], None]] = {
    "one-card": one_card,
    "two-cards-one-switch": two_cards_one_switch,
    "one-claim-two-containers": one_claim_two_containers,
    "deployment-with-shm": deployment_with_shm,
    "shared-slices": shared_slices,
    "portable-amount": portable_amount,
    "drs-two-sizes": drs_two_sizes,
    "drs-size-between": drs_size_between,
    "drs-two-containers": drs_two_containers,
    "one-claim-two-pods": one_claim_two_pods,
    "three-modes": three_modes,
    "waiting": waiting,
}
# What a README waits for where it is not single pods.
WORKLOADS = {
    "deployment-with-shm": "deployment/deployment-with-shm",
    "waiting": "daemonset/every-card",
}


def test_every_example_is_here() -> None:
    found = {path.parent.name for path in EXAMPLES.glob("*/README.md")}
    assert found == CHECKS.keys() | {"by-limits", "gcushare"}  # these in test_by_limits.py


@pytest.mark.cluster
@pytest.mark.parametrize("name", CHECKS)
def test_example(driver: Installation, namespace: str, name: str) -> None:
    scope = f"--namespace={namespace}"
    driver.cluster.kubectl("apply", scope, f"--filename={EXAMPLES / name / name}.yaml")
    if name in WORKLOADS:
        driver.cluster.wait("rollout", "status", scope, WORKLOADS[name])
    found = driver.cluster.get("pods", scope)["items"]
    wait_for_pods(driver.cluster, namespace, *(pod["metadata"]["name"] for pod in found))
    pods = {pod["metadata"]["name"]: pod for pod in driver.cluster.get("pods", scope)["items"]}
    for pod in pods.values():
        assert_sees_what_was_granted(driver, pod)
    CHECKS[name](driver, pods)
