"""A card makes no instance for a pod that is bound already: the pod is replaced on another card.
Or it does not give one back: the pod ends all the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FAILING
from dra_driver.node.claims.failures import TRIES
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.one_card import OneCard

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
_DRS = "drs"


@pytest.fixture
def failing(one: OneCard) -> Iterator[OneCard]:
    """The card makes no instance; afterwards it does, and has no taint for it."""
    one.machine.set_fault("create-fails", card=one.card)
    yield one
    one.machine.clear_faults()
    if effects(one):
        try_it_once(one)


def effects(one: OneCard) -> list[str]:
    """Of the taints that say so, on the card's DRS device."""
    [device] = [
        each
        for each in one.driver.devices(one.node.name)
        if each["attributes"]["card"]["string"] == one.card
        and each["attributes"]["type"]["string"] == _DRS
    ]
    taints = device.get("taints") or ()
    return [taint["effect"] for taint in taints if taint["key"] == TAINT_FAILING]


def try_it_once(one: OneCard) -> None:
    """As docs/user/health.md says: with a claim that tolerates the taint."""
    made = claim_in(Mode.DRS, "trial", one.namespace, 1, card=one.card)
    exactly = made["spec"]["devices"]["requests"][0]["exactly"]
    exactly["tolerations"] = [{"key": TAINT_FAILING, "operator": "Exists", "effect": "NoExecute"}]
    selector = {"kubernetes.io/hostname": one.node.name}
    one.cluster.apply(made, pod_with("trial", one.namespace, nodeSelector=selector))
    one.wait_for("trial")
    one.wait_until(lambda: not effects(one), "the end of the taint")
    one.end("trial")


def nudge(cluster: Cluster, pod: str, scope: str, times: int) -> None:
    """Let the kubelet ask again, which it does by itself after 60 to 90 s."""
    for number in range(times):
        more = partial(_has_more_failures, cluster, pod, scope, _failures(cluster, pod, scope))
        cluster.kubectl("annotate", "--overwrite", "pod", pod, scope, f"nudge={number}")
        wait_until(more, PATIENCE, f"FailedPrepareDynamicResources of {pod}")


def _has_more_failures(cluster: Cluster, pod: str, scope: str, known: int) -> bool:
    return _failures(cluster, pod, scope) > known


def _failures(cluster: Cluster, pod: str, scope: str) -> int:
    events = cluster.get("events", scope)["items"]
    return sum(
        int(each.get("count") or 1)
        for each in events
        if each["involvedObject"]["name"] == pod
        and each["reason"] == "FailedPrepareDynamicResources"
    )


def deployment(one: OneCard) -> tuple[Object, Object]:
    """One pod with an instance of the card with that address, whichever node it is of."""
    made = claim_in(Mode.DRS, "job", one.namespace, 1, card=one.card)
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": made["metadata"],
        "spec": {"spec": made["spec"]},
    }
    pod = pod_with("job", one.namespace)
    pod["spec"]["resourceClaims"] = [{"name": "gcu", "resourceClaimTemplateName": "job"}]
    labels = {"app": "job"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
    }
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": made["metadata"],
        "spec": spec,
    }
    return template, workload


def bound(one: OneCard) -> dict[str, str]:
    """The Deployment's pods that do not end, by name, with their nodes."""
    pods = one.cluster.get("pods", one.scope, "--selector=app=job")["items"]
    return {
        each["metadata"]["name"]: each["spec"].get("nodeName", "")
        for each in pods
        if "deletionTimestamp" not in each["metadata"]
    }


@pytest.mark.matrix
def test_a_pod_whose_instance_cannot_be_made_is_replaced_elsewhere(
    driver: Installation, failing: OneCard
) -> None:
    """Both nodes have a card of that address."""
    other = driver.cluster.nodes[1].name
    driver.cluster.kubectl("cordon", other)
    try:
        driver.cluster.apply(*deployment(failing))
        failing.wait_until(lambda: set(bound(failing).values()) == {failing.node.name}, "a pod")
    finally:
        driver.cluster.kubectl("uncordon", other)
    [first] = bound(failing)
    failing.wait_for_words(first, "FailedPrepareDynamicResources", "--create-instance")
    nudge(driver.cluster, first, failing.scope, TRIES - 1)
    failing.wait_until(lambda: effects(failing) == ["NoExecute"], "the taint NoExecute")
    failing.wait_until(lambda: set(bound(failing).values()) == {other}, "a pod on the other node")
    driver.cluster.wait("wait", failing.scope, "--for=condition=Available", "deployment/job")
    assert first not in bound(failing)
    assert failing.profiles() == []


def test_neighbours_that_run_well_stay_and_the_claim_tells(failing: OneCard) -> None:
    failing.machine.clear_faults()
    failing.run("neighbour", Mode.DRS, 1)
    failing.machine.set_fault("create-fails", card=failing.card)
    failing.apply("waits", Mode.DRS, 3)
    failing.wait_for_words("waits", "FailedPrepareDynamicResources", "--create-instance")
    nudge(failing.cluster, "waits", failing.scope, TRIES - 1)
    failing.wait_until(lambda: effects(failing) == ["NoSchedule"], "the taint NoSchedule")
    [device] = failing.status_devices("waits")
    [condition] = device["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "False")
    assert condition["reason"] == "PrepareFailed"
    assert "--create-instance" in condition["message"]
    failing.wait_for("neighbour")
    # While the neighbour runs: without it the taint would be NoExecute, until somebody tries again.
    failing.machine.clear_faults()
    failing.cluster.kubectl("annotate", "--overwrite", "pod", "waits", failing.scope, "nudge=last")
    failing.wait_for("waits")
    failing.wait_until(lambda: not effects(failing), "the end of the taint")
    failing.wait_until(
        lambda: failing.status_devices("waits")[0]["conditions"][0]["status"] == "True",
        "the condition Ready",
    )


@pytest.mark.matrix
def test_a_pod_ends_whose_instance_cannot_be_destroyed(one: OneCard) -> None:
    """The kubelet asks by itself; nobody gets anything of the card until it is cleared up."""
    one.run("ends", Mode.DRS, 1)
    one.machine.set_fault("destroy-fails", card=one.card)
    try:
        one.end("ends")
        tries = f"{TRIES} tries to destroy it"
        one.wait_until(lambda: one.begun().count("destroy-instance") >= TRIES, tries)
        one.wait_until(lambda: one.tainted(TAINT_FAILING), "the taint on all devices of the card")
        assert one.profiles() == ["1g.6gb"]
    finally:
        one.machine.clear_faults()
    one.wait_until(lambda: not one.profiles(), "the end of the instance")
    one.wait_until(lambda: not one.tainted(TAINT_FAILING), "the end of the taint")
    assert one.virtualization() == "Disable"
