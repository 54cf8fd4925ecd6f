"""What a waiting pod is told when kube-scheduler has refused every node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import IGNORES_PORTS, claim, pod_with, whole, with_port

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]


def test_a_pod_is_told_when_the_last_node_has_failed(scene: Scene, start_controller: Start) -> None:
    start_controller("--node-retry=600", IGNORES_PORTS).wait_for_log("begins")
    nodes = scene.machines.add_many(3, [whole(0)])
    for number, node in enumerate(nodes):
        taker = pod_with(f"taker-{number}", scene.namespace, nodeName=node)
        scene.api.create(PODS, with_port(taker))
    scene.api.create(RESOURCE_CLAIMS, claim("one", scene.namespace))
    scene.api.create(PODS, with_port(pod_with("user", scene.namespace, "one")))
    scene.wait_for_event("user", "no node fits the pod: 3 nodes: 3 refused by the scheduler lately")
    assert allocation(scene.eyes.claim("one")) is None
