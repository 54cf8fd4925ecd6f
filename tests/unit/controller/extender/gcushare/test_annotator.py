"""What is written to pods, when, and what becomes of a write that fails."""

from __future__ import annotations

import pytest

from controller.extender.gcushare.annotator import AssignmentAnnotator
from dra_driver.kube.errors import Conflict, Invalid, NotFound, Unavailable
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.api import PodApi
from tests.unit.controller.extender.build import SHARED, card, hold, pod

POD = pod("a", {SHARED: 2}, on="n")
TOLD = card(1, Mode.SHARED, hold("a", 2))


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.api = PodApi()
        self.cards: list[NodeCard] = [TOLD]
        self.assignments = AssignmentAnnotator(
            self.api, lambda _node: self.cards, clock=lambda: self.now
        )

    def write_due(self) -> int:
        """Gives how many writes there were."""
        before = len(self.api.patches)
        self.assignments.write_due()
        return len(self.api.patches) - before

    def written(self) -> Object:
        """The pod as the last write made it."""
        _, patch = self.api.patches[-1]
        return {**POD, "metadata": {**POD["metadata"], **patch["metadata"]}}


@pytest.fixture
def world() -> World:
    world = World()
    world.assignments.put(POD)
    return world


def test_a_pod_is_told_once_and_named_by_its_uid(world: World) -> None:
    assert world.write_due() == 1
    name, patch = world.api.patches[-1]
    assert (name, patch["metadata"]["uid"]) == ("a", "uid-a")
    world.assignments.put(world.written())
    world.assignments.on_node_change("n")
    assert world.write_due() == 0


def test_what_was_changed_by_somebody_is_written_again(world: World) -> None:
    world.write_due()
    world.assignments.put(POD)
    assert world.write_due() == 1


def test_nothing_is_written_while_nothing_changes(world: World) -> None:
    world.write_due()
    assert world.write_due() == 0
    world.assignments.on_node_change("another")
    assert world.write_due() == 0


def test_another_instance_is_told(world: World) -> None:
    world.write_due()
    world.assignments.put(world.written())
    world.cards = [card(2, Mode.SHARED, hold("a", 2))]
    world.assignments.on_node_change("n")
    assert world.write_due() == 1


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_left_alone(world: World, phase: str) -> None:
    world.assignments.put(pod("a", {SHARED: 2}, on="n", phase=phase))
    assert world.write_due() == 0


def test_a_pod_that_a_list_does_not_have_is_left_alone(world: World) -> None:
    world.assignments.retain(["uid-b"])
    assert world.write_due() == 0


@pytest.mark.parametrize("error", [Unavailable("away"), Refused("another one leads")], ids=repr)
def test_a_write_that_failed_is_tried_again_after_a_pause(world: World, error: GcuError) -> None:
    world.api.refusals["patch"] = [error]
    assert world.write_due() == 0
    assert world.write_due() == 0
    world.now += 60
    assert world.write_due() == 1


def test_a_pod_that_cannot_be_told_keeps_no_other_one_waiting(world: World) -> None:
    """A webhook of its namespace may refuse every change of it, or be away."""
    other = pod("b", {SHARED: 3}, on="n")
    for _ in range(10):
        world.api.refusals["patch"] = [Unavailable("a webhook is away", status=500)]
        world.write_due()
        world.now += 60
    world.api.refusals["patch"] = [Unavailable("a webhook is away", status=500)]
    world.write_due()
    world.cards = [card(1, Mode.SHARED, hold("a", 2), hold("b", 3))]
    world.assignments.put(other)
    world.now += 0.5
    assert world.write_due() == 1
    assert world.api.patches[-1][0] == "b"
    world.now += 60
    world.write_due()
    assert world.api.patches[-2][0] == "a"


@pytest.mark.parametrize(
    "error", [NotFound("gone"), Conflict("another UID"), Invalid("another UID")], ids=repr
)
def test_a_pod_that_is_gone_is_not_tried_again(world: World, error: GcuError) -> None:
    world.api.refusals["patch"] = [error]
    world.write_due()
    world.now += 60
    assert world.write_due() == 0
