"""What comes between the two PATCHes by which a pod is named and lifted, and what is not ours: the
pod is bound, and keeps its node."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controller.cache.keys import uid_of
from dra_driver.kube.api import Change, PatchType
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.kube.scheduling_gate import gate_lifted
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane import components
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.nominating import (
    GATES,
    NAMES_NODES,
    bound,
    controller,
    followed,
    gated,
    lifted,
    machines,
    named,
    nominating,
    start,
)
from tests.control_plane.objects import claim, pod_with, with_cpu
from tests.control_plane.test_controller_fence import SHORT_LEASE, armed, start_old

pytestmark = pytest.mark.control_plane

__all__ = ["armed", "controller", "nominating"]  # fixtures


def test_kube_scheduler_starts_anew_between_name_and_lift(
    scene: Scene, start_controller: Start, armed: Path
) -> None:
    """Of its own it would take a node without pods."""
    machines(scene, 3, 0, 1)
    scene.hands.start("first")
    [node] = bound(scene, "first")
    old = start_old(start_controller, armed, *NAMES_NODES, moment="before-2")
    start(scene, "second")
    old.wait_stopped()
    assert gated(scene, "second")
    assert named(scene, "second") == node
    components.restart(scene.cluster)
    old.signal(signal.SIGCONT)
    assert bound(scene, "second") == [node]


MOMENTS = {
    "before the name": "before-1",
    "between name and lift": "before-2",
    "before the answer to the lift": "after-2",
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_the_next_leader_finishes(
    scene: Scene, start_controller: Start, armed: Path, moment: str
) -> None:
    """The leader is killed at that moment. While kube-scheduler has allocated nothing, the next one
    expects each card for one pod. No name is lost, and none counts twice."""
    nodes = machines(scene, 2, 0)
    old = start_old(start_controller, armed, *NAMES_NODES, moment=moment)
    with components.stopped(scene.cluster):
        start(scene, "first")
        old.wait_stopped()
        old.kill()
        new = start_controller(*SHORT_LEASE, *NAMES_NODES, name="replica-new")
        new.wait_for_log("begins")
        start(scene, "second")
        given = [lifted(scene, name) for name in ("first", "second")]
        assert sorted(given) == sorted(nodes)
    assert bound(scene, "first", "second") == given
    assert followed(new, 2) == 2


def test_what_kube_scheduler_nominates_is_left_alone(
    scene: Scene, controller: ControllerProcess
) -> None:
    """It preempts for cpu on behalf of a pod that was lifted without a name: its claim was late."""
    [node] = machines(scene, 1, 0, cpu="2")
    scene.api.create(PODS, with_cpu(pod_with("low", scene.namespace), "1500m"))
    bound(scene, "low")
    high = pod_with("high", scene.namespace, "high", schedulingGates=GATES)
    high["spec"]["priorityClassName"] = "system-cluster-critical"
    made = scene.api.create(PODS, with_cpu(high, "1"))
    assert lifted(scene, "high") == ""
    scene.api.create(RESOURCE_CLAIMS, claim("high", scene.namespace))
    wait_until(lambda: named(scene, "high") == node, PATIENCE, "kube-scheduler's nomination")
    # The controller has seen it when it tells of what came later.
    scene.api.create(RESOURCE_CLAIMS, claim("later", scene.namespace, count=2))
    scene.api.create(PODS, pod_with("later", scene.namespace, "later", schedulingGates=GATES))
    scene.wait_for_event("later", "2 requested")
    scene.hands.end("low")
    assert bound(scene, "high") == [node]
    assert names_until_bound(scene, made) == ["", node]


def names_until_bound(scene: Scene, created: Object) -> list[str]:
    """The nodes that were named for the pod, one after the other; empty where none was."""
    since = created["metadata"]["resourceVersion"]
    names = [""]
    with closing(
        scene.api.watch(PODS, resource_version=since, namespace=scene.namespace, timeout=60.0)
    ) as watch:
        for event in watch:
            pod = event.object
            if event.change is Change.BOOKMARK or uid_of(pod) != uid_of(created):
                continue
            if pod["spec"].get("nodeName"):
                break
            name = str(pod["status"].get("nominatedNodeName", ""))
            if name != names[-1]:
                names.append(name)
    return names


def test_a_claim_that_comes_late(scene: Scene, controller: ControllerProcess) -> None:
    """kube-scheduler says what is missing, and binds the pod when it is there."""
    machines(scene, 1, 0)
    scene.api.create(PODS, pod_with("pod", scene.namespace, "pod", schedulingGates=GATES))
    assert lifted(scene, "pod") == ""
    scene.api.create(RESOURCE_CLAIMS, claim("pod", scene.namespace))
    bound(scene, "pod")


REFUSAL = "pods of this namespace stay gated"


@pytest.fixture
def keeping_gates(scene: Scene, control_plane: Cluster) -> Iterator[str]:
    """The name of somebody's policy by which no pod of the namespace loses a gate."""
    name = f"keeps-gates-{scene.namespace}"
    group = "admissionregistration.k8s.io"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods"],
    }
    gates = "size({}.spec.?schedulingGates.orValue([]))"
    kept = f"{gates.format('object')} >= {gates.format('oldObject')}"
    of_namespace = {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}
    policy = {
        "apiVersion": f"{group}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": kept, "message": REFUSAL}],
        },
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": of_namespace},
        },
    }
    control_plane.apply(policy, binding)
    wait_until(lambda: _is_heeded(scene), PATIENCE, "the policy to be heeded")
    yield name
    kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy"
    control_plane.kubectl("delete", kinds, name, "--ignore-not-found")


def _is_heeded(scene: Scene) -> bool:
    other = [{"name": "example.com/other"}]
    made = pod_with("tried", scene.namespace, schedulingGates=[*GATES, *other])
    pod = scene.api.create(PODS, made)
    strategic = PatchType.STRATEGIC_MERGE
    try:
        scene.api.patch(
            PODS, "tried", gate_lifted(pod), namespace=scene.namespace, patch_type=strategic
        )
    except KubeError as error:
        return REFUSAL in str(error)
    finally:
        scene.hands.end("tried")
    return False


def test_a_lift_that_a_policy_refuses_is_tried_again(
    scene: Scene, controller: ControllerProcess, keeping_gates: str
) -> None:
    [node] = machines(scene, 1, 0)
    start(scene, "pod")
    scene.wait_for_event("pod", REFUSAL)
    assert gated(scene, "pod")
    kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy"
    scene.cluster.kubectl("delete", kinds, keeping_gates)
    assert bound(scene, "pod") == [node]
