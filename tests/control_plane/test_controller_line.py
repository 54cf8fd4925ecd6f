"""The order of waiting pods, and the events that they get."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, whole, with_port

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]


def waits(scene: Scene, name: str) -> bool:
    return allocation(scene.eyes.claim(name)) is None


def test_a_freed_card_goes_by_priority_and_then_by_age(
    scene: Scene, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0)])
    scene.hands.start("holder")
    scene.eyes.bound("holder")
    scene.hands.start("older")
    # The server notes the age of pods in whole seconds.
    scene.eyes.stays(lambda: waits(scene, "older"), 1.1, "waiting")
    scene.hands.start("younger")
    scene.hands.start("urgent", priorityClassName="system-cluster-critical")
    line = ["older", "younger", "urgent"]
    for name in line:
        scene.wait_for_event(name, "1 card: 1 held; 1 requested")
    turns = ["holder", "urgent", "older", "younger"]
    for before, after in pairwise(turns):
        scene.hands.end(before)
        scene.eyes.bound(after)
        line.remove(after)
        assert all(waits(scene, name) for name in line)


def test_a_large_claim_is_not_passed_by_for_ever(scene: Scene, start_controller: Start) -> None:
    """Two cards on one node, asked by the pod that is first in line: what is freed there is kept
    for it, though others come who would be content with one."""
    start_controller("--fairness-patience=3").wait_for_log("begins")
    node = scene.machines.add([whole(0), whole(1)])
    for name in ("small-0", "small-1"):
        scene.hands.start(name)
        scene.eyes.bound(name)
    scene.api.create(RESOURCE_CLAIMS, claim("large", scene.namespace, count=2))
    scene.api.create(PODS, pod_with("large", scene.namespace, "large"))
    scene.wait_for_event("large", "2 cards: 2 held; 2 requested")
    scene.eyes.stays(lambda: waits(scene, "large"), 4.0, "waiting")
    scene.hands.start("small-2")
    scene.wait_for_event("small-2", f"reserved for pod {scene.namespace}/large")
    scene.hands.end("small-0")
    scene.eyes.stays(lambda: waits(scene, "small-2"), 2.0, "one card kept")
    scene.hands.end("small-1")
    assert scene.eyes.bound("large") == node
    assert waits(scene, "small-2")
    scene.hands.end("large")
    scene.eyes.bound("small-2")


def test_a_pod_is_told_when_the_last_node_has_failed(scene: Scene, start_controller: Start) -> None:
    start_controller("--node-retry=600").wait_for_log("begins")
    nodes = scene.machines.add_many(3, [whole(0)])
    for number, node in enumerate(nodes):
        taker = pod_with(f"taker-{number}", scene.namespace, nodeName=node)
        scene.api.create(PODS, with_port(taker))
    scene.api.create(RESOURCE_CLAIMS, claim("one", scene.namespace))
    scene.api.create(PODS, with_port(pod_with("user", scene.namespace, "one")))
    scene.wait_for_event("user", "no node fits the pod: 3 nodes: 3 refused by the scheduler lately")
    assert waits(scene, "one")
