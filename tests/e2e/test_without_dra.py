"""Pods that ask by limits, as the vendor's manuals have it, on a Kubernetes without DRA.

The examples run all the time, while kubelets and agents end and come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from tests.cluster.errors import CommandError
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods, why_unscheduled
from tests.e2e.by_limits import DRS, SHARED
from tests.e2e.installation import CHECKOUT
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = pytest.mark.cluster

EXAMPLES = CHECKOUT / "examples" / "by-limits"
_NAMESPACE = "by-limits"
_SCOPE = f"--namespace={_NAMESPACE}"

Pods = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def examples(without_dra: OldInstallation) -> Iterator[Pods]:
    """All examples, running."""
    cluster = without_dra.cluster
    cluster.kubectl("create", "namespace", _NAMESPACE)
    cluster.kubectl("apply", _SCOPE, f"--filename={EXAMPLES}")
    names = [each["metadata"]["name"] for each in cluster.get("pods", _SCOPE)["items"]]
    wait_for_pods(cluster, _NAMESPACE, *names)
    yield read(without_dra)
    cluster.kubectl("delete", "pods", "--all", _SCOPE)
    without_dra.wait_for_rest()


def read(driver: OldInstallation) -> Pods:
    found = driver.cluster.get("pods", _SCOPE)["items"]
    return {each["metadata"]["name"]: each for each in found}


def containers(driver: OldInstallation, but: str = "") -> dict[str, list[str]]:
    """By pod, its running containers, which are others after every restart."""
    return {
        name: [each["containerID"] for each in pod["status"]["containerStatuses"]]
        for name, pod in read(driver).items()
        if name != but and pod["status"]["phase"] == "Running"
    }


def run_another(driver: OldInstallation, name: str, node: str) -> None:
    """A new pod on the node gets what it asks for, and is gone."""
    selector = {"kubernetes.io/hostname": node}
    driver.cluster.apply(asking(name, _NAMESPACE, {DRS: 1}, nodeSelector=selector))
    wait_for_pods(driver.cluster, _NAMESPACE, name)
    driver.assert_has_what_it_asks(read(driver)[name])
    driver.cluster.kubectl("delete", "pod", name, _SCOPE)


def test_pods_carry_what_tools_of_the_vendor_read(
    without_dra: OldInstallation, examples: Pods
) -> None:
    def notes() -> dict[str, str]:
        found: dict[str, str] = read(without_dra)["drs-containers"]["metadata"]["annotations"]
        return found

    wait_until(lambda: notes()["enflame.com/gcu-assigned"] == "true", 60.0, "it to be assigned")
    pod, found = examples["drs-containers"], notes()
    [[(card, _)], [_]] = without_dra.holds(pod).values()
    node = pod["spec"]["nodeName"]
    minor = without_dra.minor(node, PciAddress.parse(card))
    assert found["enflame.com/gcu-assigned-minor"] == str(minor)
    assert found["enflame.com/gcu-request-size"] == "4"
    told = json.loads(found["assigned-containers"])
    for container, size in (("small", 1), ("large", 3)):
        [instance] = [
            each
            for each in without_dra.machine(node).instances(card)
            if each.uuid == told[container]["instanceUUID"]
        ]
        assert (told[container]["allocated"], told[container]["request"]) == (True, size)
        assert told[container]["profileName"] == instance.profile
    assert "enflame.com/gcu-assigned" not in read(without_dra)["whole-2"]["metadata"]["annotations"]


@pytest.mark.parametrize("bound", [False, True], ids=["scheduled", "past the scheduler"])
def test_a_size_that_no_profile_serves_is_refused(
    without_dra: OldInstallation, examples: Pods, bound: bool
) -> None:
    name, words = f"two-{bound}".lower(), "no profile has size 2; the card's profiles are 1g."
    spec = {"nodeName": examples["drs-1"]["spec"]["nodeName"]} if bound else {}
    without_dra.cluster.apply(asking(name, _NAMESPACE, {DRS: 2}, **spec))
    if bound:
        status = wait_until(partial(_failed, without_dra, name), 60.0, "the pod to be refused")
        assert status["reason"] == "UnexpectedAdmissionError"
        assert words in status["message"]
    else:
        wait_until(
            lambda: "1g.6gb, 3g.20gb" in why_unscheduled(read(without_dra)[name]),
            60.0,
            "the profiles in the reason",
            seen=lambda: why_unscheduled(read(without_dra)[name]),
        )
    without_dra.cluster.kubectl("delete", "pod", name, _SCOPE)


def _failed(driver: OldInstallation, name: str) -> dict[str, Any] | None:
    status: dict[str, Any] = read(driver)[name]["status"]
    return status if status["phase"] == "Failed" else None


def test_a_kubelet_starts_anew(without_dra: OldInstallation, examples: Pods) -> None:
    node = examples["drs-1"]["spec"]["nodeName"]
    counted, before = without_dra.allocatable(node, Mode.DRS), containers(without_dra)
    without_dra.cluster.node(node).restart_kubelet()
    without_dra.cluster.wait_ready()
    wait_until(
        lambda: without_dra.allocatable(node, Mode.DRS) == counted, 90.0, "the devices again"
    )
    run_another(without_dra, "after-the-kubelet", node)
    assert containers(without_dra) == before
    for pod in read(without_dra).values():
        without_dra.assert_has_what_it_asks(pod)


def test_a_pod_is_deleted_while_there_is_no_agent(
    without_dra: OldInstallation, examples: Pods
) -> None:
    """The others run on, and have what they had."""
    gone = examples["drs-3"]
    before = containers(without_dra, but="drs-3")
    [[(card, _)]] = without_dra.holds(gone).values()
    machine = without_dra.machine(gone["spec"]["nodeName"])

    def sizes() -> list[str]:
        return sorted(each.profile for each in machine.instances(card))

    had = sizes()
    with without_dra.without_agents():
        without_dra.cluster.kubectl("delete", "pod", "drs-3", _SCOPE)
        assert sizes() == had
    left = list(had)
    left.remove(next(each for each in had if each.startswith("3g.")))
    wait_until(
        lambda: sizes() == left, PATIENCE, "its instance to be gone", seen=lambda: str(sizes())
    )
    assert containers(without_dra) == before
    for pod in read(without_dra).values():
        without_dra.assert_has_what_it_asks(pod)
    run_another(without_dra, "after-the-agent", gone["spec"]["nodeName"])


def test_a_card_is_lost_and_comes_back(without_dra: OldInstallation, examples: Pods) -> None:
    """Under a pod that has it; no program starts anew for it."""
    pod = examples["drs-6"]
    node = pod["spec"]["nodeName"]
    [[(card, _)]] = without_dra.holds(pod).values()
    machine, agent, before = (
        without_dra.machine(node),
        without_dra.agent_pod(node),
        containers(without_dra),
    )

    def problem() -> str:
        [found] = [each for each in without_dra.cards(node) if str(each.address) == card]
        return found.problem

    counted = without_dra.allocatable(node, Mode.DRS)
    machine.lose_card(card)
    try:
        wait_until(lambda: problem() == "lost", 60.0, "the Node to tell of it")
        wait_until(
            lambda: without_dra.allocatable(node, Mode.DRS) == counted - 6, 60.0, "fewer devices"
        )
    finally:
        machine.restore_card(card)
    wait_until(lambda: not problem(), 60.0, "the Node to tell of its return")
    wait_until(lambda: without_dra.allocatable(node, Mode.DRS) == counted, 60.0, "all devices")
    without_dra.assert_has_what_it_asks(pod)
    assert (without_dra.agent_pod(node), containers(without_dra)) == (agent, before)


def test_a_pod_waits_for_a_card_in_its_mode(without_dra: OldInstallation, namespace: str) -> None:
    """No card of a node is free: a pod that needs an empty one is told why, and takes the first
    that is left; one that is sent there past the scheduler is refused."""
    cluster = without_dra.cluster
    node = max(without_dra.machines, key=without_dra.free)
    selector = {"kubernetes.io/hostname": node}
    names = [f"fill-{n}" for n in range(without_dra.free(node))]
    assert names
    cluster.apply(*(asking(each, namespace, {DRS: 6}, nodeSelector=selector) for each in names))
    wait_for_pods(cluster, namespace, *names)
    cluster.apply(asking("late", namespace, {SHARED: 6}, nodeSelector=selector))
    # The extender's words, or those of kube-scheduler where the kubelet counts too few.
    words = ("in DRS mode", f"Insufficient {SHARED}")

    def reason() -> str:
        return why_unscheduled(cluster.get("pod", "late", f"--namespace={namespace}"))

    wait_until(lambda: any(each in reason() for each in words), 60.0, "a reason", seen=reason)
    cluster.apply(asking("sent", namespace, {SHARED: 6}, nodeName=node))
    scope = f"--namespace={namespace}"
    wait_until(
        lambda: cluster.get("pod", "sent", scope)["status"]["phase"] == "Failed", 60.0, "a refusal"
    )
    cluster.kubectl("delete", "pod", "fill-0", scope)
    wait_for_pods(cluster, namespace, "late")
    without_dra.assert_has_what_it_asks(cluster.get("pod", "late", scope))


def test_an_uninstall_is_refused_while_a_pod_has_a_card(
    without_dra: OldInstallation, namespace: str
) -> None:
    """Nobody would destroy its instance."""
    without_dra.cluster.apply(asking("holder", namespace, {DRS: 1}))
    wait_for_pods(without_dra.cluster, namespace, "holder")
    holder = without_dra.cluster.get("pod", "holder", f"--namespace={namespace}")
    [(card, _)] = without_dra.told(holder)["c0"]
    with pytest.raises(CommandError) as refusal:
        without_dra.uninstall()
    told = refusal.value.output.replace("\\n", "\n")  # helm 4 logs what a hook says as one line
    # Others may have a part of the card.
    assert f"node {holder['spec']['nodeName']}: card {card}, drs, " in told
    [rollback] = [line.split() for line in told.splitlines() if "helm rollback" in line]
    without_dra.cluster.helm(*rollback[1:])
    without_dra.wait_for_agents()
    without_dra.assert_has_what_it_asks(holder)
    without_dra.cluster.kubectl("delete", "pod", "holder", f"--namespace={namespace}")
