"""A pod with a limit named after a DeviceClass of ours is told that nobody serves it."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_LIMIT_PREFIX
from tests.unit.controller.world import World, pod, unschedulable


def limited(device_class: str, *, where: str = "containers", **spec: object) -> Object:
    made = pod("p", status=unschedulable(), **spec)
    amounts = {f"{CLASS_LIMIT_PREFIX}{device_class}": "1"}
    container = {"name": "asking", "resources": {"limits": amounts, "requests": amounts}}
    made["spec"][where] = [*made["spec"].get(where, ()), container]
    return made


@pytest.mark.parametrize("where", ["containers", "initContainers"])
@pytest.mark.parametrize("device_class", ["gcu.enflame.com", "shared-gcu.enflame.com"])
def test_an_event_has_the_remedy(device_class: str, where: str) -> None:
    world = World()
    world.put(PODS, limited(device_class, where=where))
    assert world.run_until_idle() == []
    [told] = world.recorder.notes
    assert f"the limit {CLASS_LIMIT_PREFIX}{device_class} is not served" in told
    assert f"Use a ResourceClaim of the DeviceClass {device_class}" in told


NOT_OURS = {
    "another driver's class": limited("gpu.example.com"),
    "a class that does not exist": limited("nobody.example.com"),
    "a pod that runs": limited("gcu.enflame.com", nodeName="a"),
}


@pytest.mark.parametrize("other", NOT_OURS.values(), ids=NOT_OURS)
def test_others_are_left_alone(other: Object) -> None:
    world = World()
    world.put(PODS, other)
    assert world.run_until_idle() == []
    assert world.recorder.notes == []
