"""Packing policies of claims, and administrative access, on real servers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import PODS, Resource
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.model.names import CLASS_SHARED, DRIVER
from tests.cluster.errors import CommandError
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import (
    NAMESPACES,
    TEMPLATES,
    claim,
    pod_with,
    shared,
    template,
    whole,
)

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
OUR_DEVICES = f'device.driver == "{DRIVER}"'


def says(**packing: str) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": packing}
    return {"opaque": {"driver": DRIVER, "parameters": parameters}}


def start(scene: Scene, name: str, *config: Object, **exactly: object) -> None:
    """A pod with a claim, both of that name. By kubectl, which writes parameters without white
    space: a claim that has some can be changed through JSON by nobody, the test's end included."""
    wanted = claim(name, scene.namespace)
    wanted["spec"]["devices"]["requests"][0]["exactly"] |= exactly
    if config:
        wanted["spec"]["devices"]["config"] = list(config)
    scene.cluster.kubectl("create", "--filename=-", stdin=json.dumps(wanted))
    scene.api.create(PODS, pod_with(name, scene.namespace, name))


def test_a_claim_chooses_for_itself_and_wins_over_its_class(
    scene: Scene, controller: ControllerProcess
) -> None:
    small, large = (scene.machines.add([whole(bus) for bus in range(n)]) for n in (1, 3))
    packed = scene.hands.make_class(OUR_DEVICES, says(nodes="binpack"))
    start(scene, "spread", says(nodes="spread"), deviceClassName=packed)
    assert scene.eyes.bound("spread") == large
    written = (allocation(scene.eyes.claim("spread")) or {})["devices"]["config"]
    assert written == [
        {"source": "FromClass", "requests": ["gcu"], **says(nodes="binpack")},
        {"source": "FromClaim", **says(nodes="spread")},
    ]
    start(scene, "packed", deviceClassName=packed)
    assert scene.eyes.bound("packed") == small


def test_cards_are_filled_or_spread_as_the_claim_says(
    scene: Scene, controller: ControllerProcess
) -> None:
    scene.machines.add([shared(0), shared(1)])

    def card_for(name: str, *config: Object) -> str:
        start(scene, name, *config, deviceClassName=CLASS_SHARED)
        scene.eyes.bound(name)
        [result] = results(scene.eyes.claim(name))
        return result.device

    begun = card_for("first")
    assert card_for("apart", says(cards="spread")) != begun
    assert card_for("beside", says(cards="binpack")) == card_for("as-set")


def test_what_is_not_understood_is_told_and_not_allocated(
    scene: Scene, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0)])
    start(scene, "wrong", says(node="spread"))
    start(scene, "worse", says(nodes="tight"))
    whose = f"the configuration for {DRIVER} of claim {scene.namespace}"
    scene.wait_for_event(
        "wrong", f"{whose}/wrong is not understood: the field packing.node is unknown; "
    )
    scene.wait_for_event(
        "worse", f"{whose}/worse is not understood: packing.nodes: Input should be "
    )
    scene.wait_for_event("worse", f"write kind {KIND} of {API_VERSION}")
    assert all(allocation(scene.eyes.claim(name)) is None for name in ("wrong", "worse"))
    start(scene, "right", says(nodes="spread"))
    scene.eyes.bound("right")


def test_replicas_of_a_deployment_keep_apart(scene: Scene, start_controller: Start) -> None:
    """Spreading without counting replicas would put both on the node where less is in use."""
    busy, idle = (scene.machines.add([whole(bus) for bus in range(4)]) for _ in range(2))
    start_controller("--pack-nodes=spread").wait_for_log("leads")
    for name in ("one", "two"):
        scene.hands.start(name, nodeSelector={"machine": busy})
        scene.eyes.bound(name)
    labels = {"app": "twins"}
    unnamed = pod_with("unused", scene.namespace, template="cards")
    scene.api.create(TEMPLATES, template("cards", scene.namespace))
    body = {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": "twins", "namespace": scene.namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": unnamed["spec"]},
        },
    }
    scene.api.create(DEPLOYMENTS, body)

    def nodes() -> list[str]:
        found = scene.api.list(PODS, namespace=scene.namespace, label_selector="app=twins").items
        return sorted(str(pod["spec"].get("nodeName")) for pod in found)

    wait_until(
        lambda: nodes() == sorted([busy, idle]),
        PATIENCE,
        "one on each node",
        seen=lambda: str(nodes()),
    )


def test_administrative_access_beside_the_holder(
    scene: Scene, controller: ControllerProcess
) -> None:
    node = scene.machines.add([whole(0)])
    start(scene, "holder")
    scene.eyes.bound("holder")
    with pytest.raises(CommandError) as refused:
        start(scene, "admin", adminAccess=True)
    assert "admin access to devices requires" in refused.value.output
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
