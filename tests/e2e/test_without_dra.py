"""Pods that ask by limits, as the vendor's manuals have it, on a Kubernetes without DRA.

The examples run all the time, while kubelets and agents end and come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dra_driver.model.names import RESOURCE_MEMORY
from dra_driver.model.pci import PciAddress
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods, why_unscheduled
from tests.e2e.by_limits import DRS, SHARED, limits_of
from tests.e2e.events import wait_for_note
from tests.e2e.installation import CHECKOUT
from tests.e2e.without_dra import OldInstallation, asking

pytestmark = pytest.mark.cluster

EXAMPLES = CHECKOUT / "examples" / "by-limits"
_NAMESPACE = "by-limits"
_SCOPE = f"--namespace={_NAMESPACE}"

Object = dict[str, Any]
Pods = dict[str, Object]


@pytest.fixture(scope="module")
def examples(without_dra: OldInstallation) -> Iterator[Pods]:
    """All examples, running; they serve every test, so none ends one of them."""
    cluster = without_dra.cluster
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    try:
        cluster.kubectl("apply", _SCOPE, f"--filename={EXAMPLES}")
        wait_for_pods(cluster, _NAMESPACE, *read(without_dra))
        yield read(without_dra)
    finally:
        cluster.kubectl("delete", "pods", "--all", _SCOPE)
        without_dra.wait_for_rest()


def read(driver: OldInstallation) -> Pods:
    found = driver.cluster.get("pods", _SCOPE)["items"]
    return {each["metadata"]["name"]: each for each in found}


def containers(driver: OldInstallation) -> dict[str, list[str]]:
    """By pod, its containers, which are others after every restart."""
    return {
        name: [each["containerID"] for each in pod["status"]["containerStatuses"]]
        for name, pod in read(driver).items()
    }


def run_another(driver: OldInstallation, name: str, namespace: str, node: str) -> Object:
    """A new pod on the node, which has got what it asks for."""
    selector = {"kubernetes.io/hostname": node}
    driver.cluster.apply(asking(name, namespace, {DRS: 1}, nodeSelector=selector))
    wait_for_pods(driver.cluster, namespace, name)
    found = driver.cluster.get("pod", name, f"--namespace={namespace}")
    driver.assert_has_what_it_asks(found)
    return found


def test_pods_carry_what_tools_of_the_vendor_read(
    without_dra: OldInstallation, examples: Pods
) -> None:
    def notes() -> dict[str, str]:
        found: dict[str, str] = read(without_dra)["drs-containers"]["metadata"]["annotations"]
        return found

    wait_until(lambda: notes()["enflame.com/gcu-assigned"] == "true", PATIENCE, "it to be assigned")
    pod, found = examples["drs-containers"], notes()
    [[(card, _)], [_]] = without_dra.told(pod).values()
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
    without_dra: OldInstallation, examples: Pods, namespace: str, bound: bool
) -> None:
    words = "no profile has size 2; the card's profiles are 1g."
    spec = {"nodeName": examples["drs-1"]["spec"]["nodeName"]} if bound else {}
    without_dra.cluster.apply(asking("two", namespace, {DRS: 2}, **spec))
    if bound:
        status = wait_for_refusal(without_dra, "two", namespace)
        assert status["reason"] == "UnexpectedAdmissionError"
        assert words in status["message"]
    else:
        wait_for_reason(without_dra, "two", namespace, "1g.6gb, 3g.20gb")


def wait_for_reason(driver: OldInstallation, name: str, namespace: str, *words: str) -> None:
    """Return when one of these is why the pod is not scheduled. Raises WaitTimeout."""

    def reason() -> str:
        return why_unscheduled(driver.cluster.get("pod", name, f"--namespace={namespace}"))

    what = f"pod {name} to wait for {' or '.join(words)}"
    wait_until(lambda: any(each in reason() for each in words), PATIENCE, what, seen=reason)


def wait_for_refusal(driver: OldInstallation, name: str, namespace: str) -> Object:
    """Return the pod's status when its node has refused it. Raises WaitTimeout."""

    def failed() -> Object | None:
        status: Object = driver.cluster.get("pod", name, f"--namespace={namespace}")["status"]
        return status if status["phase"] == "Failed" else None

    return wait_until(failed, PATIENCE, f"pod {name} to be refused")


@pytest.mark.matrix
def test_a_kubelet_starts_anew(
    without_dra: OldInstallation, examples: Pods, namespace: str
) -> None:
    node = examples["drs-1"]["spec"]["nodeName"]
    counted, before = without_dra.wait_until_counted(node), containers(without_dra)
    kubelet = without_dra.cluster.node(node)
    kubelet.stop_kubelet()
    without_dra.forget_counts(node)
    kubelet.start_kubelet()
    without_dra.cluster.wait_ready()
    assert without_dra.wait_until_counted(node) == counted
    run_another(without_dra, "after", namespace, node)
    assert containers(without_dra) == before
    for pod in read(without_dra).values():
        without_dra.assert_has_what_it_asks(pod)


@pytest.mark.matrix
def test_a_pod_is_deleted_while_there_is_no_agent(
    without_dra: OldInstallation, examples: Pods, namespace: str
) -> None:
    """The others run on, and have what they had."""
    node = examples["drs-1"]["spec"]["nodeName"]
    gone = run_another(without_dra, "gone", namespace, node)
    before, [instance] = containers(without_dra), without_dra.instances(gone)
    machine = without_dra.machine(node)
    with without_dra.without_agents():
        without_dra.cluster.kubectl("delete", "pod", "gone", f"--namespace={namespace}")
        assert instance in {each.uuid for each in machine.instances()}
    without_dra.wait_for_ended(node)
    assert instance not in {each.uuid for each in machine.instances()}
    assert containers(without_dra) == before
    for pod in read(without_dra).values():
        without_dra.assert_has_what_it_asks(pod)
    run_another(without_dra, "after", namespace, node)


def test_a_card_is_lost_and_comes_back(without_dra: OldInstallation, examples: Pods) -> None:
    """Under a pod that has it; no program starts anew for it."""
    pod = examples["drs-6"]
    node = pod["spec"]["nodeName"]
    [[(card, _)]] = without_dra.told(pod).values()
    machine, agent, before = (
        without_dra.machine(node),
        without_dra.agent_pod(node),
        containers(without_dra),
    )

    def problem() -> str:
        [found] = [each for each in without_dra.cards(node) if str(each.address) == card]
        return found.problem

    counted = without_dra.wait_until_counted(node)
    machine.lose_card(card)
    try:
        wait_until(lambda: problem() == "lost", PATIENCE, "the Node to tell of it")
        assert without_dra.wait_until_counted(node) == counted - 6
    finally:
        machine.restore_card(card)
    wait_until(lambda: not problem(), PATIENCE, "the Node to tell of its return")
    assert without_dra.wait_until_counted(node) == counted
    without_dra.assert_has_what_it_asks(pod)
    assert (without_dra.agent_pod(node), containers(without_dra)) == (agent, before)


@pytest.mark.matrix
def test_a_pod_waits_for_a_card_in_its_mode(without_dra: OldInstallation, namespace: str) -> None:
    """No card of a node is free: a pod that needs an empty one is told why, and takes the first
    that is left; one that is sent there past the scheduler is refused."""
    cluster = without_dra.cluster
    for each in without_dra.machines:
        without_dra.wait_for_ended(each)
    node = max(without_dra.machines, key=without_dra.free)
    selector = {"kubernetes.io/hostname": node}
    names = [f"fill-{n}" for n in range(without_dra.free(node))]
    assert names
    cluster.apply(*(asking(each, namespace, {DRS: 6}, nodeSelector=selector) for each in names))
    wait_for_pods(cluster, namespace, *names)
    cluster.apply(asking("late", namespace, {SHARED: 6}, nodeSelector=selector))
    # The extender's words, or those of kube-scheduler where the kubelet counts too few.
    wait_for_reason(without_dra, "late", namespace, "in DRS mode", f"Insufficient {SHARED}")
    cluster.apply(asking("sent", namespace, {SHARED: 6}, nodeName=node))
    wait_for_refusal(without_dra, "sent", namespace)
    scope = f"--namespace={namespace}"
    cluster.kubectl("delete", "pod", "fill-0", scope)
    wait_for_pods(cluster, namespace, "late")
    without_dra.assert_has_what_it_asks(cluster.get("pod", "late", scope))


@pytest.fixture
def restored(without_dra: OldInstallation, namespace: str) -> Iterator[OldInstallation]:
    """Whatever a test does to the release, it is there again before the test's pods end."""
    yield without_dra
    without_dra.restore()


def test_a_pod_that_another_scheduler_binds_is_reported(
    without_dra: OldInstallation, namespace: str
) -> None:
    """As after an upgrade of the control plane that took the extender's configuration away."""
    past = asking("past", namespace, {SHARED: 1}, schedulerName="default-scheduler")
    without_dra.cluster.apply(past)
    words = f"bound without this extender: {namespace}/past"
    wait_for_note(without_dra, DRIVER_NAMESPACE, "Pod", "GcuExtenderBypassed", words)


@pytest.mark.matrix
def test_an_uninstall_is_refused_while_a_pod_has_a_card(
    restored: OldInstallation, namespace: str
) -> None:
    """Nobody would destroy its instance, for which it asks by memory."""
    restored.cluster.apply(asking("holder", namespace, {RESOURCE_MEMORY: 1024}))
    wait_for_pods(restored.cluster, namespace, "holder")
    holder = restored.cluster.get("pod", "holder", f"--namespace={namespace}")
    assert limits_of(holder["spec"]) == {"c0": {DRS: "1"}}
    [(card, _)] = restored.told(holder)["c0"]
    with pytest.raises(CommandError) as refusal:
        restored.uninstall()
    told = refusal.value.output.replace("\\n", "\n")  # helm 4 logs what a hook says as one line
    line = f"node {holder['spec']['nodeName']}: card {card}, drs, used by "
    [told_of_card] = [each for each in told.splitlines() if line in each]
    assert f"pod {namespace}/holder" in told_of_card  # others may have a part of the card
    [rollback] = [line.split() for line in told.splitlines() if "helm rollback" in line]
    restored.cluster.helm(*rollback[1:])
    restored.wait_for_agents()
    restored.assert_has_what_it_asks(holder)
    restored.cluster.kubectl("delete", "pod", "holder", f"--namespace={namespace}")
