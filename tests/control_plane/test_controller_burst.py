"""A burst of pods, in whose middle the controller ends twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import results
from tests.cluster.waiting import wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import whole

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

Start = Callable[..., ControllerProcess]
_PODS = 80


def bound_pods(scene: Scene) -> dict[str, str]:
    """Names of bound pods to their nodes."""
    pods = scene.api.list(PODS, namespace=scene.namespace).items
    return {pod["metadata"]["name"]: node for pod in pods if (node := pod["spec"].get("nodeName"))}


def test_the_controller_restarts_in_a_burst(scene: Scene, start_controller: Start) -> None:
    """Nothing is lost and nothing given twice, with and without an orderly end."""
    scene.machines.add_many(10, [whole(bus) for bus in range(20)])
    patience = "--scheduling-patience=30"  # the scheduler has eighty pods to come to
    running = start_controller(patience, name="replica-0")
    running.wait_for_log("begins")
    short = ("--lease-duration=3", "--lease-renew-deadline=2", "--lease-retry=0.5")
    names = [f"user-{number}" for number in range(_PODS)]
    for number, name in enumerate(names):
        scene.hands.start(name)
        if number in {25, 50}:
            running.kill() if number == 50 else running.stop()
            running = start_controller(patience, *short, name=f"replica-{number}")
    wait_until(lambda: len(bound_pods(scene)) == _PODS, 180.0, f"{_PODS} pods bound")
    nodes = bound_pods(scene)
    held = {}
    for found in scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).items:
        [result] = results(found)
        held[result.pool, result.device] = found["metadata"]["name"]
        assert result.pool == f"gcu.enflame.com/{nodes[found['metadata']['name']]}"
    assert len(held) == _PODS
    scene.hands.end_all()
