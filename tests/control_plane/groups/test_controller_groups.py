"""Groups of pods beside a real kube-scheduler that binds them as groups: they are bound as far as
the cards reach, and what cannot be bound holds nothing."""

from __future__ import annotations

from typing import Final

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import reserved_for
from tests.cluster.waiting import wait_until
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.groups.conftest import URGENT
from tests.control_plane.objects import TEMPLATES, pod_with, template, whole
from tests.control_plane.pod_groups import LIMIT, PodGroups, member_of

pytestmark = pytest.mark.control_plane

INCOMPLETE: Final = "needs 2 pods that have their ResourceClaims, and 1 has them"


@pytest.fixture
def controller(start_controller: Start) -> ControllerProcess:
    return begun(start_controller)


def begun(start_controller: Start, retry: float = 1.0) -> ControllerProcess:
    """A controller that leads. What was not bound pauses for so many seconds at first."""
    process = start_controller(f"--node-retry={retry}")
    process.wait_for_log("begins")
    return process


@pytest.mark.parametrize(
    ("size", "gated"),
    [
        pytest.param(2, False, id="2 pods"),
        pytest.param(3, False, id="3 pods"),
        pytest.param(3, True, id="3 pods, our gate", marks=pytest.mark.matrix),
    ],
)
def test_a_basic_group_is_bound_as_far_as_the_cards_reach(
    scene: Scene, groups: PodGroups, controller: ControllerProcess, size: int, gated: bool
) -> None:
    """The gate of the one that is not served is lifted with the others': otherwise kube-scheduler
    would not try them."""
    names = [f"pod-{number}" for number in range(size)]
    scene.machines.add([whole(0), whole(1)])
    groups.make("group")
    groups.join("group", *names, gated=gated)
    groups.wait_for_bound(names, 2)
    assert not groups.gated(names)
    scene.eyes.no_card_twice(groups.bound(names))
    if size > 2:
        scene.machines.add([whole(0)])
        groups.wait_for_bound(names, size)


def test_nothing_is_held_for_gangs_that_are_not_complete(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0), whole(1)])
    for gang in ("a", "b"):
        groups.make(gang, least=2)
        groups.join(gang, f"{gang}-0")
    for name in ("a-0", "b-0"):
        scene.wait_for_event(name, f"Warning GcuAllocationFailed Pod: PodGroup {scene.namespace}")
        scene.wait_for_event(name, INCOMPLETE)
    scene.eyes.stays(lambda: not groups.holding(["a-0", "b-0"]), 3.0, "nothing held")
    groups.join("b", "b-1")
    groups.wait_for_bound(["a-0", "b-0", "b-1"], 2)


@pytest.mark.parametrize(
    ("cards", "gated"),
    [
        pytest.param([2], False, id="one node", marks=pytest.mark.matrix),
        pytest.param([1, 1], False, id="two nodes", marks=pytest.mark.matrix),
        pytest.param([2], True, id="one node, our gate"),
        pytest.param([1, 1], True, id="two nodes, our gate"),
    ],
)
def test_one_of_two_gangs_is_bound_and_then_the_other(
    scene: Scene, groups: PodGroups, start_controller: Start, cards: list[int], gated: bool
) -> None:
    """Both are complete when the controller begins, and each is in line for one of the cards."""
    for count in cards:
        scene.machines.add([whole(bus) for bus in range(count)])
    gangs = (["pod-0", "pod-2"], ["pod-1", "pod-3"])
    for gang in ("a", "b"):
        groups.make(gang, least=2)
    for pair in zip(*gangs, strict=True):
        for gang, name in zip(("a", "b"), pair, strict=True):
            groups.join(gang, name, gated=gated)
    begun(start_controller)
    first = groups.wait_for_one(*gangs)
    scene.eyes.no_card_twice(first)
    [second] = [gang for gang in gangs if gang is not first]
    for name in first:
        scene.hands.end(name)
        scene.api.delete(RESOURCE_CLAIMS, name, namespace=scene.namespace)
    groups.wait_for_bound(second, 2)


def test_a_gang_that_is_not_bound_gives_everything_back_together(
    scene: Scene, groups: PodGroups, start_controller: Start
) -> None:
    """Its scheduler does not exist, and one card would do for the pod that waits."""
    begun(start_controller, retry=600.0)
    scene.machines.add([whole(0), whole(1)])
    gang = ["first", "second"]
    groups.make("gang", least=2)
    groups.join("gang", *gang, schedulerName="nobody")
    wait_until(lambda: groups.holding(gang) == gang, LIMIT, "both allocated")
    scene.hands.start("other")
    scene.eyes.bound("other", LIMIT)
    for name in gang:
        scene.wait_for_event(name, "Warning GcuAllocationReleased Pod")
    scene.wait_for_event(gang[0], f"{scene.namespace}/other")
    scene.eyes.stays(lambda: not groups.holding(gang), 3.0, "the gang pauses")


def test_a_gang_that_holds_too_little_gives_way(
    scene: Scene, groups: PodGroups, controller: ControllerProcess, urgent: None
) -> None:
    """One gang has one of the two cards when the other one, which comes first, is given the second
    one. kube-scheduler has no word in it: the gates are not lifted before a gang is served."""
    scene.machines.add([whole(0), whole(1)])
    scene.hands.start("holder")
    scene.eyes.bound("holder", LIMIT)
    gangs = (["a-0", "a-1"], ["b-0", "b-1"])
    groups.make("a", least=2)
    groups.join("a", *gangs[0], gated=True)
    wait_until(lambda: len(groups.holding(gangs[0])) == 1, LIMIT, "one of two cards held")
    groups.make("b", least=2, priorityClassName=URGENT)
    groups.join("b", *gangs[1], gated=True, priorityClassName=URGENT)
    scene.wait_for_event("b-0", "2 cards: 2 held")  # it is known when a card comes free
    scene.hands.end("holder")
    scene.api.delete(RESOURCE_CLAIMS, "holder", namespace=scene.namespace)
    assert groups.wait_for_one(*gangs) == gangs[1]


def test_a_claim_of_the_group_is_one_for_all_its_pods(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0)])
    scene.api.create(TEMPLATES, template("cards", scene.namespace))
    groups.make("group", resourceClaims=[{"name": "made", "resourceClaimTemplateName": "cards"}])
    for name in ("one", "two"):
        member = pod_with(name, scene.namespace, template="cards", **member_of("group"))
        scene.api.create(PODS, member)
    for name in ("one", "two"):
        scene.eyes.bound(name, LIMIT)
    [found] = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).items
    assert [each["resource"] for each in reserved_for(found)] == ["podgroups"]


def test_a_member_that_comes_later_is_ungated_on_sight(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    """Though there is no card for it yet: kube-scheduler would not try any member that waits."""
    scene.machines.add([whole(0), whole(1)])
    groups.make("gang", least=2)
    groups.join("gang", "first", "second", gated=True)
    groups.wait_for_bound(["first", "second"], 2)
    groups.join("gang", "late", gated=True)
    wait_until(lambda: not groups.gated(["late"]), LIMIT, "the gate lifted")
    assert not groups.holding(["late"])
    scene.machines.add([whole(0)])
    scene.eyes.bound("late", LIMIT)


@pytest.mark.matrix
def test_the_cards_serve_others_while_a_gang_waits_for_its_pods(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0), whole(1)])
    groups.make("gang", least=2)
    groups.join("gang", "first")
    scene.wait_for_event("first", INCOMPLETE)
    others = ["other-0", "other-1"]
    for name in others:
        scene.hands.start(name)
        scene.eyes.bound(name, LIMIT)
    groups.join("gang", "second")
    scene.wait_for_event("second", "2 cards: 2 held")
    scene.hands.end(others[0])
    scene.eyes.stays(lambda: not groups.bound(["first", "second"]), 4.0, "one card is too few")
    scene.hands.end(others[1])
    groups.wait_for_bound(["first", "second"], 2)
