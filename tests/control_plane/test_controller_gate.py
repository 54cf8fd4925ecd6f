"""The policy that gives pods our scheduling gate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, whole

pytestmark = pytest.mark.control_plane

GATES = [{"name": SCHEDULING_GATE}]
GROUP = "admissionregistration.k8s.io"
POLICY = Resource(
    GROUP, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False
)
BINDING = Resource(
    GROUP,
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    namespaced=False,
)


def gates(pod: Object) -> list[str]:
    return [each["name"] for each in pod["spec"].get("schedulingGates") or ()]


@pytest.fixture
def policy(control_plane: Cluster, api: Client, namespace: str) -> Iterator[None]:
    """The chart's policy, heeded in the test's namespace."""
    shown = control_plane.helm(
        "template",
        RELEASE,
        str(CHART),
        "--set=schedulingGate.policy=true",
        "--show-only=templates/policy-scheduling-gate.yaml",
    )
    control_plane.kubectl("apply", "--filename=-", stdin=shown)
    control_plane.kubectl(
        "label", "namespace", namespace, "gcu.enflame.com/scheduling-gate=enabled"
    )

    def is_heeded() -> bool:
        tried = api.create(PODS, pod_with("try", namespace, "none"), dry_run=True)
        return gates(tried) == [SCHEDULING_GATE]

    wait_until(is_heeded, PATIENCE, "the policy to be heeded")
    yield
    for resource in (BINDING, POLICY):
        api.delete(resource, "scheduling-gate.gcu.enflame.com")


def test_the_policy_sets_it(scene: Scene, controller: ControllerProcess, policy: None) -> None:
    """On pods with claims that are not bound, beside gates of their own."""
    node = scene.machines.add([whole(0)])
    cases = {
        "with-claims": (pod_with("a", scene.namespace, "none"), [SCHEDULING_GATE]),
        "without": (pod_with("b", scene.namespace), []),
        "bound": (pod_with("c", scene.namespace, "none", nodeName=node), []),
        "twice": (pod_with("d", scene.namespace, "none", schedulingGates=GATES), [SCHEDULING_GATE]),
    }
    found = {
        name: gates(scene.api.create(PODS, made, dry_run=True)) for name, (made, _) in cases.items()
    }
    assert found == {name: wanted for name, (_, wanted) in cases.items()}
    scene.api.create(RESOURCE_CLAIMS, claim("user", scene.namespace))
    assert gates(scene.api.create(PODS, pod_with("user", scene.namespace, "user"))) == [
        SCHEDULING_GATE
    ]
    assert scene.eyes.bound("user") == node
