"""An allocation has so long to be reserved, and then goes to a pod that waits, though
kube-scheduler may be about to reserve it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, reserved_for
from tests.control_plane import components
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.held_requests import Held, Proxy, held_scheduler
from tests.control_plane.objects import whole

pytestmark = pytest.mark.control_plane

SERVED_SOON: Final = 30.0
"""Seconds for a pod whose cards another one holds: the patience is three."""


def hold(proxy: Proxy, scene: Scene, point: str, node: str) -> Held:
    """What kube-scheduler writes next for the pod `first` when it has decided."""
    if point == "nomination":
        path = f"/api/v1/namespaces/{scene.namespace}/pods/first/status"
        return proxy.hold("PATCH", path, f'"nominatedNodeName":"{node}"'.encode())
    return proxy.hold("PUT", reservation_path(scene))


def reservation_path(scene: Scene) -> str:
    return RESOURCE_CLAIMS.path(scene.namespace, "first", "status")


@pytest.mark.parametrize(
    ("point", "nominates"),
    [
        pytest.param("reservation", "false", id="before 1.35"),
        pytest.param("nomination", "true", id="since 1.35"),
    ],
)
def test_no_pod_is_parted_from_its_claim_by_the_clock(
    scene: Scene, start_controller: Start, tmp_path: Path, point: str, nominates: str
) -> None:
    """kube-scheduler is stopped between reading a claim and reserving it. When it goes on, its
    reservation meets the release in the claim's resourceVersion."""
    node = scene.machines.add([whole(0)])
    start_controller("--node-retry=600").wait_for_log("begins")
    gates = f"--feature-gates=NominatedNodeNameForExpectation={nominates}"
    with held_scheduler(scene.cluster, tmp_path, gates) as proxy:
        held = hold(proxy, scene, point, node)
        scene.hands.start("first")
        held.wait_for_arrival()
        with components.stopped(scene.cluster):
            scene.hands.start("second")
            scene.eyes.released("first", SERVED_SOON)
            scene.eyes.allocated("second", SERVED_SOON)
        held.let_go()
        assert proxy.wait_for_answer("PUT", reservation_path(scene)) == 409
        assert scene.eyes.bound("second") == node
        users = reserved_for(scene.eyes.claim("second"))
        assert [each["name"] for each in users] == ["second"]
        scene.eyes.stays(
            lambda: not scene.eyes.pod("first")["spec"].get("nodeName"), 3.0, "it waits"
        )
        assert allocation(scene.eyes.claim("first")) is None
        assert not reserved_for(scene.eyes.claim("first"))
    scene.hands.end("second")
    scene.api.delete(RESOURCE_CLAIMS, "second", namespace=scene.namespace)
