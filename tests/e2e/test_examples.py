"""Every example, applied as its README says, whichever program allocates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    ATTR_MEMORY_MIB,
    ATTR_PCIE_SWITCH,
    ENV_VISIBLE_DEVICES,
)
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.card_health import set_health, tainted
from tests.e2e.events import wait_for_note
from tests.e2e.installation import CARDS, CHECKOUT, Installation
from tests.e2e.seen import assert_sees_what_was_granted, cards, granted

EXAMPLES = CHECKOUT / "examples"

_CAP_IPC_LOCK = 14  # linux/capability.h

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
        for device in driver.devices(pod["spec"]["nodeName"])
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
    mounts = driver.cluster.execute(pod["metadata"]["namespace"], name, "cat", "/proc/mounts")
    [shm] = [line for line in mounts.splitlines() if " /dev/shm " in line]
    assert f"size={8 << 20}k" in shm


def shared_slices(driver: Installation, pods: Pods) -> None:
    assert amounts(driver, pods["shared-slices"]) == [(Mode.SHARED, 2)]


def portable_amount(driver: Installation, pods: Pods) -> None:
    assert pods.keys() == {"by-capacity", "by-config", "by-both"}
    assert all(amounts(driver, pod) == [(Mode.SHARED, 2)] for pod in pods.values())


def collective_communication(driver: Installation, pods: Pods) -> None:
    pod = pods["collective-communication"]
    assert len(cards(driver, pod)) == 2
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    status = driver.cluster.execute(namespace, name, "cat", "/proc/1/status", "/proc/mounts")
    [effective] = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    assert int(effective, 16) >> _CAP_IPC_LOCK & 1
    assert [
        f"size={128 << 10}k" in line for line in status.splitlines() if " /dev/shm " in line
    ] == [True]


def memory_and_compute(driver: Installation, pods: Pods) -> None:
    assert amounts(driver, pods["best-effort"]) == [(Mode.SHARED, 2)]
    assert amounts(driver, pods["fixed-share"]) == [(Mode.DRS, 1)]
    assert amounts(driver, pods["limits-best-effort"]) == [(Mode.SHARED, 2)]
    assert amounts(driver, pods["limits-fixed-share"]) == [(Mode.DRS, 3)]


def from_other_drivers(driver: Installation, pods: Pods) -> None:
    assert {name: amounts(driver, pod) for name, pod in pods.items()} == {
        "qgpu": [(Mode.SHARED, 2)],
        "koordinator-metax": [(Mode.DRS, 1)],
        "koordinator-two-cards": [(Mode.SHARED, 3), (Mode.SHARED, 3)],
        "hami-metax": [(Mode.SHARED, 4)],
        "hami-percentage": [(Mode.SHARED, 2)],
    }
    assert len(cards(driver, pods["koordinator-two-cards"])) == 2


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


def selectors(driver: Installation, pods: Pods) -> None:
    pod = pods["selectors"]
    memory = {
        device["attributes"]["card"]["string"]: device["attributes"][ATTR_MEMORY_MIB]["int"]
        for device in driver.devices(pod["spec"]["nodeName"])
    }
    assert [memory[str(card)] > 45_000 for card in cards(driver, pod)] == [True]
    assert any(each <= 45_000 for node in driver.machines for each in memories(driver, node))


def memories(driver: Installation, node: str) -> set[int]:
    return {each["attributes"][ATTR_MEMORY_MIB]["int"] for each in driver.devices(node)}


def first_available(driver: Installation, pods: Pods) -> None:
    [grant] = granted(driver, pods["first-available"])
    assert (grant.request, grant.mode, grant.amount) == ("gcu/partition", Mode.DRS, 3)


def tolerations(driver: Installation, pods: Pods) -> None:
    [card] = cards(driver, pods["tolerations"])
    assert str(card) in tainted(driver)[pods["tolerations"]["spec"]["nodeName"]]


def gcu_config(driver: Installation, pods: Pods) -> None:
    assert len({pod["spec"]["nodeName"] for pod in pods.values()}) == len(pods) == 2
    assert all(amounts(driver, pod) == [(Mode.SHARED, 2)] for pod in pods.values())


def statefulset(driver: Installation, pods: Pods) -> None:
    assert pods.keys() == {"statefulset-0", "statefulset-1"}
    assert all(amounts(driver, pod) == [(Mode.DRS, 1)] for pod in pods.values())


def administrators_access(driver: Installation, pods: Pods) -> None:
    worker = pods.pop("worker")
    monitors = {pod["spec"]["nodeName"]: cards(driver, pod) for pod in pods.values()}
    assert cards(driver, worker) < monitors[worker["spec"]["nodeName"]]
    assert {node: len(seen) for node, seen in monitors.items()} == {
        node: CARDS[machine] for node, machine in driver.machines.items()
    }


def waiting(driver: Installation, pods: Pods) -> None:
    [namespace] = {pod["metadata"]["namespace"] for pod in pods.values()}
    scope = f"--namespace={namespace}"
    driver.cluster.kubectl("apply", scope, f"--filename={EXAMPLES / 'waiting' / 'late.yaml'}")
    wait_for_note(driver, namespace, "Pod", "GcuAllocationFailed", "12 held")
    driver.cluster.kubectl("delete", scope, "daemonset", "every-card")
    wait_for_pods(driver.cluster, namespace, "late")
    late = driver.cluster.get("pod", "late", scope)
    assert_sees_what_was_granted(driver, late)


_CHECKS: dict[str, dict[str, Callable[[Installation, Pods], None]]] = {
    "whole cards": {
        "one-card": one_card,
        "two-cards-one-switch": two_cards_one_switch,
        "one-claim-two-containers": one_claim_two_containers,
        "deployment-with-shm": deployment_with_shm,
        "collective-communication": collective_communication,
        "drs-two-sizes": drs_two_sizes,
    },
    "slices": {
        "shared-slices": shared_slices,
        "portable-amount": portable_amount,
        "memory-and-compute": memory_and_compute,
        "from-other-drivers": from_other_drivers,
        "one-claim-two-pods": one_claim_two_pods,
    },
    "instances": {
        "drs-size-between": drs_size_between,
        "drs-two-containers": drs_two_containers,
        "three-modes": three_modes,
        "first-available": first_available,
        "statefulset": statefulset,
    },
    "on other nodes than the fullest": {"gcu-config": gcu_config, "selectors": selectors},
    "tolerations": {"tolerations": tolerations},
    "administrators-access": {"administrators-access": administrators_access},
    "waiting": {"waiting": waiting},
}
"""What is applied together: the twelve cards are enough for all of a group. The last ones need
all cards, or make some unhealthy. No two examples have an object of the same name."""

_AT_EACH_CHANGE = {"slices", "administrators-access", "waiting"}
"""What no other test of a cluster shows; the others' claims are planned at each change
(`tests/unit/kubectl_gcu/scheduling/test_plan_of_examples.py`)."""

_CHOSEN = "chosen"
_ALLOCATORS = [
    _CHOSEN,
    pytest.param(
        ALLOCATOR_CONTROLLER, marks=[pytest.mark.matrix, pytest.mark.kubernetes(least="1.37")]
    ),
    pytest.param(
        ALLOCATOR_SCHEDULER,
        marks=[pytest.mark.matrix, pytest.mark.kubernetes(least="1.36", below="1.37")],
    ),
]

# What a README waits for where it is not single pods.
WORKLOADS = {
    "deployment-with-shm": "deployment/deployment-with-shm",
    "gcu-config": "deployment/gcu-config",
    "statefulset": "statefulset/statefulset",
    "administrators-access": "daemonset/monitor",
    "waiting": "daemonset/every-card",
}


def test_every_example_is_here() -> None:
    found = {path.parent.name for path in EXAMPLES.glob("*/README.md")}
    elsewhere = {
        *("by-limits", "gcushare"),  # in test_by_limits.py
        # In tests/control_plane/test_nominations_beside.py: no kubelet prepares another driver's
        # devices without that driver.
        "card-and-network-interface",
    }
    assert found == {name for group in _CHECKS.values() for name in group} | {"job"} | elsewhere


@pytest.fixture(scope="module")
def allocator(installed: Installation, request: pytest.FixtureRequest) -> Iterator[None]:
    """The program that allocates, helm's choice and the other one; the release is changed once for
    all tests."""
    if request.param == _CHOSEN:
        yield
        return
    with installed.changed(allocator=request.param):
        yield


@pytest.fixture
def prepared(driver: Installation, namespace: str, group: str) -> Iterator[None]:
    """What an example needs before it is applied, and its end."""
    if group == "administrators-access":
        label = "resource.kubernetes.io/admin-access=true"
        driver.cluster.kubectl("label", "namespace", namespace, label)
    if group != "tolerations":
        yield
        return
    try:
        set_health(driver, healthy=False)
        yield
    finally:
        set_health(driver, healthy=True)


def manifest(name: str) -> Path:
    return EXAMPLES / name / f"{name}.yaml"


def of_example(name: str, pods: Pods) -> Pods:
    """Those pods that the example makes, itself or by a workload."""
    made = list(yaml.safe_load_all(manifest(name).read_text()))
    names = {one["metadata"]["name"] for one in made if one["kind"] == "Pod"}
    workload = WORKLOADS.get(name, "/").partition("/")[2]
    return {
        pod: found
        for pod, found in pods.items()
        if pod in names or (workload and pod.startswith(f"{workload}-"))
    }


@pytest.mark.cluster
@pytest.mark.usefixtures("allocator", "prepared")
@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=[] if group in _AT_EACH_CHANGE else pytest.mark.matrix)
        for group in _CHECKS
    ],
)
@pytest.mark.parametrize("allocator", _ALLOCATORS, indirect=True)
def test_examples(driver: Installation, namespace: str, group: str) -> None:
    scope, checks = f"--namespace={namespace}", _CHECKS[group]
    driver.cluster.kubectl("apply", scope, *(f"--filename={manifest(name)}" for name in checks))
    for name in checks.keys() & WORKLOADS.keys():
        driver.cluster.wait("rollout", "status", scope, WORKLOADS[name])
    found = driver.cluster.get("pods", scope)["items"]
    wait_for_pods(driver.cluster, namespace, *(pod["metadata"]["name"] for pod in found))
    pods = {pod["metadata"]["name"]: pod for pod in driver.cluster.get("pods", scope)["items"]}
    for pod in pods.values():
        assert_sees_what_was_granted(driver, pod)
    for name, check in checks.items():
        check(driver, of_example(name, pods))


@pytest.mark.cluster
@pytest.mark.usefixtures("allocator")
@pytest.mark.parametrize("allocator", _ALLOCATORS, indirect=True)
def test_the_job(driver: Installation, namespace: str) -> None:
    """Its pods end, and with each its claim gives the card back, though the pod stays."""
    cluster, scope = driver.cluster, f"--namespace={namespace}"
    cluster.kubectl("apply", scope, f"--filename={EXAMPLES / 'job' / 'job.yaml'}")
    cluster.wait("wait", scope, "--for=condition=Complete", "job/job")
    pods = cluster.get("pods", scope)["items"]
    logs = [cluster.kubectl("logs", scope, pod["metadata"]["name"]) for pod in pods]
    assert len(logs) == 3
    for log in logs:
        [minor] = re.findall(rf"^{ENV_VISIBLE_DEVICES}=(\d+)$", log, flags=re.MULTILINE)
        assert f" gcu{minor}\n" in log
    wait_until(
        lambda: (
            not any(
                claim.get("status", {}).get("allocation")
                for claim in cluster.get("resourceclaims", scope)["items"]
            )
        ),
        PATIENCE,
        "the cards of ended pods to be free",
    )
