"""The chart and the controller as they are with ``allocator: scheduler``, and pods whose node is
named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from dra_driver.kube.resources import EVENTS, PODS, RESOURCE_CLAIMS
from dra_driver.model.names import ALLOCATOR_SCHEDULER, CLASS_SHARED, SCHEDULING_GATE
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.cards import in_all_modes
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver
from tests.control_plane.objects import claim, pod_with

GATES: Final = [{"name": SCHEDULING_GATE}]
NAMES_NODES: Final = ("--allocator=scheduler", "--nomination-waiting=0")
"""No pod without room loses its gate: so none goes without a name only because the controller has
not yet seen all slices of the nodes that a test has just made."""
LIFTS_ONE: Final = ("--allocator=scheduler", "--nomination-waiting=1")
"""One pod without room loses its gate, as for autoscalers."""


@pytest.fixture(scope="module", autouse=True)
def nominating(driver: Driver, control_plane: Cluster) -> Iterator[None]:
    """The chart's rights and policies where kube-scheduler allocates, and serves limits for whole
    cards."""
    values = {
        "allocator": "scheduler",
        "schedulerVersion": control_plane.release.version,
        "legacyResources": {"enabled": True, "servedByScheduler": True},
    }
    with driver.changed(**values):
        yield


@pytest.fixture
def controller(start_controller: Start) -> ControllerProcess:
    """It leads."""
    found = start_controller(*NAMES_NODES)
    found.wait_for_log("begins")
    return found


def machines(scene: Scene, count: int, *buses: int, **capacity: str) -> list[str]:
    """So many nodes with these cards."""
    devices = in_all_modes(*buses, allocator=ALLOCATOR_SCHEDULER)
    return [scene.machines.add(devices, **capacity) for _ in range(count)]


def start(scene: Scene, name: str, *, slices: int = 0, **spec: Any) -> None:
    """A claim for a card, or for slices of one, and a gated pod that uses it."""
    made = claim(name, scene.namespace)
    if slices:
        exactly = {
            "deviceClassName": CLASS_SHARED,
            "capacity": {"requests": {"slices": str(slices)}},
        }
        made["spec"] = {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}}
    scene.api.create(RESOURCE_CLAIMS, made)
    pod = pod_with(name, scene.namespace, name, schedulingGates=GATES, **spec)
    scene.api.create(PODS, pod)


def bound(scene: Scene, *names: str) -> list[str]:
    """The nodes of the pods, once they are bound."""
    return [scene.eyes.bound(name) for name in names]


def gated(scene: Scene, name: str) -> bool:
    """Whether the pod has a gate."""
    return bool(scene.eyes.pod(name)["spec"].get("schedulingGates"))


def named(scene: Scene, name: str) -> str:
    """The node that is named for the pod; empty if none is."""
    return str(scene.eyes.pod(name)["status"].get("nominatedNodeName", ""))


def lifted(scene: Scene, name: str) -> str:
    """The node that is named for the pod, once its gate is gone."""
    wait_until(lambda: not gated(scene, name), PATIENCE, f"the gate of {name} lifted")
    return named(scene, name)


def verdicts(scene: Scene, name: str) -> list[str]:
    """Reasons of kube-scheduler's events about the pod, once it has told that it bound it."""

    def reasons() -> list[str]:
        return [
            each["reason"]
            for each in scene.api.list(EVENTS, namespace=scene.namespace).items
            if each["regarding"]["name"] == name
            and each.get("reportingController") == "default-scheduler"
        ]

    wait_until(lambda: "Scheduled" in reasons(), PATIENCE, f"the event that {name} is bound")
    return reasons()


def counts(controller: ControllerProcess, metric: str, label: str) -> dict[str, float]:
    """The values of a counter of the controller's, by its one label."""
    line = rf'^gcu_controller_{metric}_total\{{{label}="(\w+)"\}} (\S+)$'
    _, text = controller.probe("/metrics")
    return {key: float(value) for key, value in re.findall(line, text, re.MULTILINE)}


def followed(controller: ControllerProcess, of: int) -> float:
    """How many pods were bound to the node that was named for them, once it has counted so many
    bound pods for which one was named, and no more."""

    def counted() -> dict[str, float]:
        return counts(controller, "nominated_pods_bound", "followed")

    wait_until(
        lambda: sum(counted().values()) >= of,
        PATIENCE,
        f"{of} names counted",
        seen=lambda: str(counted()),
    )
    found = counted()
    assert sum(found.values()) == of, found
    return found["true"]
