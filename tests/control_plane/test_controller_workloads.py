"""The controller under what people run: several pods, claims that come and go."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, reserved_for
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import TEMPLATES, claim, pod_with, template, whole

pytestmark = pytest.mark.control_plane

STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)
JOBS = Resource("batch", "v1", "jobs", "Job", namespaced=True)


def pods_of(scene: Scene, **labels: str) -> list[Object]:
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return list(scene.api.list(PODS, namespace=scene.namespace, label_selector=selector).items)


def all_bound(scene: Scene, count: int, **labels: str) -> None:
    """Return when so many pods are bound, with different cards."""

    def are_bound() -> bool:
        return sum(bool(pod["spec"].get("nodeName")) for pod in pods_of(scene, **labels)) == count

    def claims() -> list[Object]:
        return list(scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).items)

    # A claim of a pod that ended goes a little later.
    wait_until(lambda: are_bound() and len(claims()) == count, PATIENCE, f"{count} pods bound")
    scene.eyes.no_card_twice([each["metadata"]["name"] for each in claims()])


def workload(scene: Scene, resource: Resource, name: str, **spec: object) -> None:
    """One whose pods each have a card of their own."""
    policy = {"restartPolicy": "Never"} if resource is JOBS else {}
    pod = pod_with("unused", scene.namespace, template="cards", **policy)
    scene.api.create(TEMPLATES, template("cards", scene.namespace))
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": scene.namespace},
        "spec": {
            **spec,
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]},
        },
    }
    scene.api.create(resource, body)


def test_a_stateful_set(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add([whole(bus) for bus in range(3)])
    selector = {"matchLabels": {"app": "set"}}
    workload(
        scene,
        STATEFUL_SETS,
        "set",
        replicas=3,
        serviceName="none",
        podManagementPolicy="Parallel",
        selector=selector,
    )
    all_bound(scene, 3, app="set")
    before = scene.eyes.pod("set-1")["metadata"]["uid"]
    scene.hands.end("set-1")
    wait_until(
        lambda: (
            {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of(scene, app="set")}.get(
                "set-1", before
            )
            != before
        ),
        PATIENCE,
        "set-1 made anew",
    )
    wait_until(
        lambda: len(scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).items) == 3,
        PATIENCE,
        "the claim of before gone",
    )
    all_bound(scene, 3, app="set")
    scene.api.delete(STATEFUL_SETS, "set", namespace=scene.namespace)


@pytest.mark.matrix
def test_a_job_of_fifty_pods(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add_many(5, [whole(bus) for bus in range(10)])
    workload(scene, JOBS, "job", parallelism=50, completions=50)
    all_bound(scene, 50, app="job")
    scene.api.delete(JOBS, "job", namespace=scene.namespace)


def test_a_drained_node(scene: Scene, controller: ControllerProcess) -> None:
    """Its pods come up elsewhere, and its cards are free when it is back."""
    node = scene.machines.add([whole(0), whole(1)])
    selector = {"matchLabels": {"app": "set"}}
    workload(
        scene,
        STATEFUL_SETS,
        "set",
        replicas=2,
        serviceName="none",
        podManagementPolicy="Parallel",
        selector=selector,
    )
    all_bound(scene, 2, app="set")
    other = scene.machines.add([whole(0), whole(1)])
    scene.hands.drain(node)
    wait_until(
        lambda: [pod["spec"].get("nodeName") for pod in pods_of(scene, app="set")] == [other] * 2,
        PATIENCE,
        "both pods on the other node",
    )
    scene.hands.uncordon(node)
    scene.hands.start("user")
    assert scene.eyes.bound("user") == node
    scene.api.delete(STATEFUL_SETS, "set", namespace=scene.namespace)


@pytest.mark.matrix
def test_a_claim_has_room_for_256_pods(scene: Scene, controller: ControllerProcess) -> None:
    """The API allows so many reservations; the test writes all but one. kube-scheduler says so on
    one pod more, and binds this pod when another one ends."""
    node = scene.machines.add([whole(0)])
    scene.api.create(RESOURCE_CLAIMS, claim("shared", scene.namespace))
    crowd = [f"user-{number}" for number in range(255)]

    def start(name: str) -> None:
        made = pod_with(name, scene.namespace, "shared", schedulerName="nobody")
        scene.api.create(PODS, made)

    scene.hands.for_all(start, crowd)
    scene.hands.reserve(scene.eyes.allocated("shared"), *crowd)
    scene.api.create(PODS, pod_with("last", scene.namespace, "shared"))
    assert scene.eyes.bound("last") == node
    assert len(reserved_for(scene.eyes.claim("shared"))) == 256
    scene.api.create(PODS, pod_with("late", scene.namespace, "shared"))
    wait_until(
        lambda: "must have at most 256 items" in str(scene.eyes.pod("late").get("status")),
        PATIENCE,
        "kube-scheduler reports the limit",
    )
    assert "nodeName" not in scene.eyes.pod("late")["spec"]
    scene.hands.end(crowd[0])
    assert scene.eyes.bound("late") == node
    scene.hands.end_all()
