"""Administrative access on real servers."""

from __future__ import annotations

import pytest

from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, results
from dra_driver.model.names import CLASS_SHARED
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import (
    NAMESPACES,
    claim,
    pod_with,
    whole,
)

pytestmark = pytest.mark.control_plane


def start(scene: Scene, name: str, **exactly: object) -> None:
    """A pod with a claim, both of that name."""
    wanted = claim(name, scene.namespace)
    wanted["spec"]["devices"]["requests"][0]["exactly"] |= exactly
    scene.api.create(RESOURCE_CLAIMS, wanted)
    scene.api.create(PODS, pod_with(name, scene.namespace, name))


def test_administrative_access_beside_the_holder(
    scene: Scene, controller: ControllerProcess
) -> None:
    node = scene.machines.add([whole(0)])
    start(scene, "holder")
    scene.eyes.bound("holder")
    with pytest.raises(KubeError) as refused:
        start(scene, "admin", adminAccess=True)
    assert "admin access to devices requires" in str(refused.value)
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    scene.api.patch(NAMESPACES, scene.namespace, label)
    start(scene, "admin", adminAccess=True)
    assert scene.eyes.bound("admin") == node
    [result] = results(scene.eyes.claim("admin"))
    assert (result.device, result.admin_access) == ("whole-0000-00-00-0", True)
    start(scene, "share", deviceClassName=CLASS_SHARED, adminAccess=True)
    scene.wait_for_event("share", "adminAccess is for whole cards")
    assert allocation(scene.eyes.claim("share")) is None
    scene.hands.end("holder")
    start(scene, "next")
    assert scene.eyes.bound("next") == node
