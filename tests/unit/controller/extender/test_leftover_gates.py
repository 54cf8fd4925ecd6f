"""Pods that were gated while claims were served do not wait for ever."""

from __future__ import annotations

import pytest

from controller.extender.leftover_gates import LeftoverGates
from controller.leaderelection.fence import NotLeader
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Invalid, NotFound, Unavailable
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError
from dra_driver.model.names import SCHEDULING_GATE
from tests.control_plane.objects import pod_with
from tests.fake_api.api import FakeApi


class World:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.gates = LeftoverGates(self.api)

    def add(self, name: str, *gates: str) -> Object:
        """Gives the pod as its watch has it."""
        made = pod_with(name, "team", schedulingGates=[{"name": each} for each in gates])
        return self.api.put(PODS, made)

    def left(self) -> dict[str, list[str]]:
        """The gates of pods."""
        return {
            pod["metadata"]["name"]: [each["name"] for each in pod["spec"]["schedulingGates"]]
            for pod in self.api.all(PODS)
        }

    def patches(self) -> int:
        return sum(call.verb == "patch" for call in self.api.faults.calls)


def test_ours_go_and_others_stay() -> None:
    world = World()
    world.gates.on_replace([world.add("one", SCHEDULING_GATE), world.add("other", "x.io/hold")])
    world.gates.on_event(Change.ADDED, world.add("late", SCHEDULING_GATE, "x.io/hold"))
    world.gates.lift()
    assert world.left() == {"one": [], "other": ["x.io/hold"], "late": ["x.io/hold"]}
    world.gates.lift()
    assert world.patches() == 2  # each once


@pytest.mark.parametrize(
    ("error", "patches"),
    [
        (Unavailable("away"), 2),
        (NotLeader("the lease ended"), 2),
        (NotFound("gone", status=404), 1),
        (Invalid("uid", status=422), 1),
    ],
    ids=["server away", "the lease ended meanwhile", "pod gone", "another pod"],
)
def test_what_fails_is_tried_again_if_that_can_help(error: GcuError, patches: int) -> None:
    world = World()
    world.gates.on_replace([world.add("one", SCHEDULING_GATE)])
    world.api.faults.refuse(error, "patch")
    for _ in range(2):
        world.gates.lift()
    assert world.patches() == patches


def test_a_pod_that_is_deleted_is_left_alone() -> None:
    world = World()
    pod = world.add("one", SCHEDULING_GATE)
    world.gates.on_event(Change.ADDED, pod)
    world.gates.on_event(Change.DELETED, pod)
    world.gates.lift()
    assert world.patches() == 0
