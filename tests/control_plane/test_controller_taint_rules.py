"""DeviceTaintRules on a real server, and without the right to read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from dra_driver.kube.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.names import DRIVER
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, whole

pytestmark = pytest.mark.control_plane

NAME = "drain"
Set = Callable[[str, Object], None]


@pytest.fixture
def set_rule(scene: Scene) -> Iterator[Set]:
    """Sets the one rule of the test: its effect, and what it selects."""

    def apply(effect: str, selector: Object) -> None:
        taint = {"key": "example.com/drain", "effect": effect}
        scene.cluster.apply(
            {
                "apiVersion": DEVICE_TAINT_RULES.api_version,
                "kind": DEVICE_TAINT_RULES.kind,
                "metadata": {"name": NAME},
                "spec": {"deviceSelector": selector, "taint": taint},
            }
        )

    yield apply
    scene.cluster.kubectl("delete", "devicetaintrule", NAME, "--ignore-not-found")


@pytest.mark.kubernetes(least="1.37")
def test_an_evicted_pod_does_not_come_back_to_the_device(
    scene: Scene, controller: ControllerProcess, set_rule: Set
) -> None:
    """kube-controller-manager evicts the pod, and a new one is served by another card, to stay."""
    scene.machines.add([whole(0), whole(1)])
    scene.hands.start("one")
    scene.eyes.bound("one")
    [first] = results(scene.eyes.claim("one"))
    set_rule("NoExecute", {"driver": DRIVER, "pool": first.pool, "device": first.device})
    wait_until(
        lambda: "deletionTimestamp" in scene.eyes.pod("one")["metadata"], PATIENCE, "eviction"
    )
    scene.eyes.end("one")
    scene.eyes.released("one")
    scene.api.create(PODS, pod_with("two", scene.namespace, "one"))
    scene.eyes.bound("two")
    [second] = results(scene.eyes.claim("one"))
    assert second.device != first.device
    scene.eyes.stays(
        lambda: "deletionTimestamp" not in scene.eyes.pod("two")["metadata"], 2.0, "not evicted"
    )
    scene.api.create(RESOURCE_CLAIMS, claim("other", scene.namespace))
    scene.api.create(PODS, pod_with("third", scene.namespace, "other"))
    scene.wait_for_event("third", "1 held, 1 tainted example.com/drain by DeviceTaintRule drain")


def test_without_the_right_to_list_rules_pods_are_served(
    scene: Scene, start_controller: Callable[..., ControllerProcess]
) -> None:
    """As before an upgrade of the chart: what the old role does not have is done without."""
    role = f"{DRIVER}:controller"
    found = json.loads(scene.cluster.kubectl("get", "clusterrole", role, "--output=json"))
    rules = found["rules"]
    narrowed = [
        each | {"resources": [name for name in each["resources"] if name != "devicetaintrules"]}
        for each in rules
    ]
    patch(scene, role, narrowed)
    try:
        process = start_controller()
        process.wait_for_log("cannot follow devicetaintrules, going on without them")
        scene.machines.add([whole(0)])
        scene.hands.start("one")
        scene.eyes.bound("one")
    finally:
        patch(scene, role, rules)


def patch(scene: Scene, role: str, rules: list[Object]) -> None:
    body = json.dumps({"rules": rules})
    scene.cluster.kubectl("patch", "clusterrole", role, "--type=merge", f"--patch={body}")
