"""With ``allocator: scheduler``, a real kube-scheduler goes where the controller names a node, and
elsewhere where the node does not fit."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.effects import Effects
from dra_driver.model.names import RESOURCE_WHOLE
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.nominating import (
    GATES,
    LIFTS_ONE,
    NAMES_NODES,
    bound,
    controller,
    followed,
    gated,
    machines,
    nominating,
    start,
    verdicts,
)
from tests.control_plane.objects import IGNORES_PORTS, claim, pod_with

pytestmark = pytest.mark.control_plane

__all__ = ["controller", "nominating"]  # fixtures


def cards(scene: Scene, *names: str) -> Counter[tuple[str, str]]:
    """How many of the claims are on each card."""
    found = [result for name in names for result in results(scene.eyes.claim(name))]
    return Counter((result.pool, result.device.partition("-")[2]) for result in found)


def test_pods_are_packed(scene: Scene, controller: ControllerProcess) -> None:
    """kube-scheduler alone would spread them over the nodes."""
    machines(scene, 3, 0, 1)
    names = [f"pod-{number}" for number in range(6)]
    for name in names:
        start(scene, name, slices=2)
    assert len(set(bound(scene, *names))) == 1
    assert sorted(cards(scene, *names).values()) == [3, 3]


@pytest.mark.parametrize("is_considered", [True, False], ids=["considered", "not considered"])
def test_replicas_that_keep_apart(
    scene: Scene, start_controller: Start, *, is_considered: bool
) -> None:
    """Each is named a node of its own. Where the controller does not consider other pods, it names
    the node of another one, and kube-scheduler goes on in the same attempt."""
    plugins = () if is_considered else ("--unconsidered-plugins=InterPodAffinity",)
    controller = start_controller(*NAMES_NODES, *plugins)
    controller.wait_for_log("begins")
    machines(scene, 3, 0, 1)
    labels = {"matchLabels": {"keeps": "apart"}}
    term = {"labelSelector": labels, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    names = [f"pod-{number}" for number in range(3)]
    for name in names:
        made = pod_with(name, scene.namespace, name, schedulingGates=GATES, affinity=apart)
        made["metadata"]["labels"] = {"keeps": "apart"}
        scene.api.create(RESOURCE_CLAIMS, claim(name, scene.namespace))
        scene.api.create(PODS, made)
    assert len(set(bound(scene, *names))) == 3
    assert [verdicts(scene, name) for name in names] == [["Scheduled"]] * 3
    assert (followed(controller, len(names)) == len(names)) is is_considered


def test_of_a_resource_that_one_node_has(scene: Scene, controller: ControllerProcess) -> None:
    machines(scene, 4, 0)
    [node] = machines(scene, 1, 0, **{"example.com/rdma": "1"})
    made = pod_with("pod", scene.namespace, "pod", schedulingGates=GATES)
    made["spec"]["containers"][0]["resources"]["limits"] = {"example.com/rdma": "1"}
    scene.api.create(RESOURCE_CLAIMS, claim("pod", scene.namespace))
    scene.api.create(PODS, made)
    assert bound(scene, "pod") == [node]
    assert followed(controller, 1) == 1


def test_a_pod_without_room_is_told_why_and_served_in_turn(
    scene: Scene, start_controller: Start
) -> None:
    start_controller(*LIFTS_ONE).wait_for_log("begins")
    machines(scene, 1, 0)
    start(scene, "first")
    bound(scene, "first")
    for name in ("second", "third"):
        start(scene, name)
        scene.wait_for_event(name, "1 requested")
    # One is lifted for autoscalers, and kube-scheduler has a word about it.
    wait_until(lambda: not gated(scene, "second"), PATIENCE, "the gate of the first that waits")
    assert gated(scene, "third")
    for name, following in (("first", "second"), ("second", "third")):
        scene.hands.end(name)
        scene.api.delete(RESOURCE_CLAIMS, name, namespace=scene.namespace)
        bound(scene, following)


def test_pods_that_share_a_claim(scene: Scene, controller: ControllerProcess) -> None:
    machines(scene, 2, 0)
    scene.api.create(RESOURCE_CLAIMS, claim("shared", scene.namespace))
    names = ["one", "two", "three"]
    for name in names:
        scene.api.create(PODS, pod_with(name, scene.namespace, "shared", schedulingGates=GATES))
    assert len(set(bound(scene, *names))) == 1


@pytest.fixture(scope="module")
def polite(control_plane: Cluster) -> Iterator[str]:
    """A priority class whose pods end no others."""
    name = f"polite-{os.getpid()}"
    control_plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 1,
            "preemptionPolicy": "Never",
        }
    )
    yield name
    control_plane.kubectl("delete", "priorityclass", name)


def test_pods_that_may_not_preempt_give_their_name_back(
    scene: Scene, start_controller: Start, polite: str
) -> None:
    """kube-scheduler leaves the field of such a pod as it is. The controller does not consider
    ports here."""
    start_controller(*NAMES_NODES, IGNORES_PORTS).wait_for_log("begins")
    machines(scene, 1, 0, 1)
    port = [{"name": "main", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    for name in ("one", "two"):
        start(scene, name, priorityClassName=polite, containers=port)
    first = wait_until(lambda: some_bound(scene, "one", "two"), PATIENCE, "one bound pod")
    [other] = {"one", "two"} - {first}
    start(scene, "next")
    bound(scene, "next")
    scene.hands.end(first)
    bound(scene, other)


def some_bound(scene: Scene, *names: str) -> str:
    return next((name for name in names if scene.eyes.pod(name)["spec"].get("nodeName")), "")


@pytest.fixture
def account(controller_kubeconfig: Path) -> Iterator[Client]:
    """Whoever has the controller's token."""
    found = connect(controller_kubeconfig, effects=Effects(), user_agent="tests/1")
    yield found
    found.close()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"status": {"phase": "Succeeded"}}, id="the phase"),
        pytest.param({"status": {"podIP": "10.0.0.1"}}, id="an address"),
        pytest.param({"metadata": {"labels": {"app": "other"}}}, id="labels"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="annotations"),
    ],
)
def test_the_controllers_token_writes_nothing_else_of_a_status(
    scene: Scene, account: Client, body: Object
) -> None:
    start(scene, "pod")
    with pytest.raises(KubeError, match=r"controller-pods\.gcu\.enflame\.com"):
        account.patch(PODS, "pod", body, namespace=scene.namespace, subresource="status")


def test_a_node_is_named_for_limits_that_kube_scheduler_serves(
    scene: Scene, controller: ControllerProcess
) -> None:
    """It makes their claim itself, when the pod has its node."""
    machines(scene, 2, 0, 1)
    start(scene, "first")
    node = scene.eyes.bound("first")
    limits = {"resources": {"limits": {RESOURCE_WHOLE: "1"}}}
    container = {"name": "main", "image": "none", **limits}
    made = pod_with("second", scene.namespace, schedulingGates=GATES)
    made["spec"]["containers"] = [container]
    scene.api.create(PODS, made)
    assert scene.eyes.bound("second") == node
    assert "resourceClaims" not in scene.eyes.pod("second")["spec"]
    assert followed(controller, 2) == 2


def test_no_node_is_named_for_a_pod_without_claims(scene: Scene, account: Client) -> None:
    [node] = machines(scene, 1, 0)
    scene.api.create(PODS, pod_with("plain", scene.namespace, schedulingGates=GATES))
    body = {"status": {"nominatedNodeName": node}}
    with pytest.raises(KubeError, match=r"controller-pods\.gcu\.enflame\.com"):
        account.patch(PODS, "plain", body, namespace=scene.namespace, subresource="status")
