"""A pod with one claim of ours and one of another driver, which kube-scheduler allocates."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import all_results, allocation
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, whole

pytestmark = pytest.mark.control_plane

OTHER = "other.example.com"


def start(scene: Scene) -> None:
    """The pod `user` with the claims `ours` and `theirs`."""
    theirs = claim("theirs", scene.namespace)
    device_class = scene.hands.make_class(f'device.driver == "{OTHER}"')
    theirs["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = device_class
    scene.api.create(RESOURCE_CLAIMS, theirs)
    scene.api.create(RESOURCE_CLAIMS, claim("ours", scene.namespace))
    scene.api.create(PODS, pod_with("user", scene.namespace, "ours", "theirs"))


def bound_with_both(scene: Scene, node: str) -> None:
    assert scene.eyes.bound("user") == node
    assert scene.eyes.node_of("ours") == node
    assert [each.driver for each in all_results(scene.eyes.claim("theirs"))] == [OTHER]


def test_both_come_from_one_node(scene: Scene, controller: ControllerProcess) -> None:
    """The one where the other driver has its only device, though another one packs better."""
    scene.machines.add([whole(0)])
    node = scene.machines.add([whole(0), whole(1)])
    scene.hands.publish_other(node, OTHER)
    start(scene)
    bound_with_both(scene, node)


def test_theirs_cannot_be_had_yet(scene: Scene, controller: ControllerProcess) -> None:
    """Nobody keeps a card meanwhile, and both are given when the other device has come."""
    scene.machines.add([whole(0)])
    node = scene.machines.add([whole(0)])
    start(scene)
    scene.eyes.allocated("ours")
    scene.eyes.released("ours")
    assert allocation(scene.eyes.claim("theirs")) is None
    scene.hands.publish_other(node, OTHER)
    bound_with_both(scene, node)


def test_ours_cannot_be_had_yet(scene: Scene, controller: ControllerProcess) -> None:
    """The card beside the other driver's only device is in use, and others are of no help."""
    node = scene.machines.add([whole(0)])
    scene.hands.publish_other(node, OTHER)
    scene.hands.start("holder")
    scene.eyes.bound("holder")
    scene.machines.add([whole(0)])
    start(scene)
    scene.wait_for_event("user", "refused by the scheduler lately")
    assert allocation(scene.eyes.claim("theirs")) is None
    scene.hands.end("holder")
    bound_with_both(scene, node)
