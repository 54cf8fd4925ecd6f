"""kube-scheduler allocates, and a group of pods goes whole to the nodes that are named for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import reserved_for
from tests.cluster.waiting import wait_until
from tests.control_plane import components
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.nominating import (
    LIFTS_ONE,
    NAMES_NODES,
    bound,
    controller,
    followed,
    machines,
    named,
    nominating,
)
from tests.control_plane.objects import TEMPLATES, pod_with, template
from tests.control_plane.pod_groups import LIMIT, OUR_GATE, PodGroups, member_of
from tests.control_plane.test_controller_fence import SHORT_LEASE, armed, start_old

pytestmark = pytest.mark.control_plane

__all__ = ["armed", "controller", "nominating"]  # fixtures

GANG: Final = ["pod-0", "pod-1", "pod-2", "pod-3"]


def labelled(scene: Scene, racks: dict[str, str]) -> None:
    for node, rack in racks.items():
        scene.api.patch(NODES, node, {"metadata": {"labels": {"rack": rack}}})


def holds_nothing(groups: PodGroups, names: Sequence[str]) -> None:
    """Now and for a while."""
    groups.scene.eyes.stays(lambda: not groups.holding(names), 2.0, "nothing held")
    assert not groups.bound(names)


def test_a_gang_goes_whole_to_the_fewest_nodes(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    """kube-scheduler alone would spread its pods."""
    machines(scene, 4, 0, 1)
    groups.make("gang", least=4)
    groups.join("gang", *GANG, gated=True)
    assert sorted(Counter(bound(scene, *GANG)).values()) == [2, 2]
    scene.eyes.no_card_twice(GANG)
    assert followed(controller, 4) == 4


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.matrix), 3])
def test_a_basic_group_is_bound_as_far_as_the_cards_reach(
    scene: Scene, groups: PodGroups, start_controller: Start, size: int
) -> None:
    start_controller(*LIFTS_ONE).wait_for_log("begins")
    names = GANG[:size]
    machines(scene, 1, 0, 1)
    groups.make("group")
    groups.join("group", *names, gated=True)
    groups.wait_for_bound(names, 2)
    assert not groups.gated(names)


def test_nothing_is_held_for_gangs_that_are_not_complete(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    machines(scene, 1, 0, 1)
    for gang in ("a", "b"):
        groups.make(gang, least=2)
        groups.join(gang, f"{gang}-0", gated=True)
    scene.wait_for_event("a", "needs 2 pods that have their ResourceClaims, and 1 has them")
    holds_nothing(groups, ["a-0", "b-0"])
    groups.join("b", "b-1", gated=True)
    groups.wait_for_bound(["a-0", "b-0", "b-1"], 2)


@pytest.mark.parametrize(
    "buses",
    [
        pytest.param([0, 1], id="one node", marks=pytest.mark.matrix),
        pytest.param([0], id="two nodes"),
    ],
)
def test_one_of_two_gangs_is_bound_and_then_the_other(
    scene: Scene, groups: PodGroups, start_controller: Start, buses: list[int]
) -> None:
    """Both are complete when the controller begins. Without names this took 94 s."""
    machines(scene, 2 // len(buses), *buses)
    gangs = (["pod-0", "pod-2"], ["pod-1", "pod-3"])
    for gang, names in zip(("a", "b"), gangs, strict=True):
        groups.make(gang, least=2)
        groups.join(gang, *names, gated=True)
    start_controller(*NAMES_NODES).wait_for_log("begins")
    first = groups.wait_for_one(*gangs)
    [second] = [gang for gang in gangs if gang is not first]
    assert groups.gated(second) == second
    for name in first:
        scene.hands.end(name)
        scene.api.delete(RESOURCE_CLAIMS, name, namespace=scene.namespace)
    groups.wait_for_bound(second, 2)


def test_a_gang_without_room_says_what_it_is_short_of(
    scene: Scene, groups: PodGroups, start_controller: Start
) -> None:
    """Smaller work goes on, and the gang is bound when there is room."""
    start_controller(*NAMES_NODES).wait_for_log("begins")
    machines(scene, 3, 0)
    groups.make("gang", least=4)
    groups.join("gang", *GANG, gated=True)
    scene.wait_for_event("gang", "3 of 4 pods fit together; short of 1 of gcu.enflame.com")
    holds_nothing(groups, GANG)
    assert not any(named(scene, name) for name in GANG)
    scene.hands.start("single", schedulingGates=OUR_GATE)
    scene.eyes.bound("single")
    machines(scene, 2, 0)
    groups.wait_for_bound(GANG, 4)


def test_a_claim_of_the_group_is_one_for_all_its_pods(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    """They are decided together. Once the claim is allocated, its node is the only one, and none is
    named."""
    machines(scene, 2, 0)
    scene.api.create(TEMPLATES, template("cards", scene.namespace))
    of_group = [{"name": "made", "resourceClaimTemplateName": "cards"}]
    groups.make("group", least=2, resourceClaims=of_group)
    for name in ("one", "two"):
        spec = member_of("group", gated=True)
        scene.api.create(PODS, pod_with(name, scene.namespace, template="cards", **spec))
    assert len(set(bound(scene, "one", "two"))) == 1
    [found] = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace).items
    assert [each["resource"] for each in reserved_for(found)] == ["podgroups"]
    assert followed(controller, 2) == 2


def test_later_members_are_named_near_the_others(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    """A replacement is one pod: the group is not decided again."""
    machines(scene, 2, 0, 1, 2)
    groups.make("gang", least=2)
    groups.join("gang", "first", "second", gated=True)
    [node] = set(bound(scene, "first", "second"))
    groups.join("gang", "third", gated=True)
    assert bound(scene, "third") == [node]
    scene.hands.end("second")
    scene.api.delete(RESOURCE_CLAIMS, "second", namespace=scene.namespace)
    scene.eyes.gone("second")  # until then its card is held
    groups.join("gang", "again", gated=True)
    assert bound(scene, "again") == [node]


def test_with_a_topology_key_names_decide_inside_the_domain(
    scene: Scene, groups: PodGroups, controller: ControllerProcess
) -> None:
    """One of the domains has room for all four."""
    nodes = machines(scene, 4, 0, 1)
    labelled(scene, dict(zip(nodes, ("r1", "r2", "r2", "r2"), strict=True)))
    groups.make("gang", least=4, schedulingConstraints={"topology": [{"key": "rack"}]})
    groups.join("gang", *GANG, gated=True)
    found = Counter(bound(scene, *GANG))
    assert nodes[0] not in found
    assert sorted(found.values()) == [2, 2]
    assert followed(controller, 4) == 4


def test_of_as_few_nodes_those_of_one_rack(
    scene: Scene, groups: PodGroups, start_controller: Start
) -> None:
    flags = (*NAMES_NODES, "--nomination-group-labels=rack")
    start_controller(*flags).wait_for_log("begins")
    nodes = machines(scene, 4, 0, 1)
    labelled(scene, dict(zip(nodes, ("r1", "r2", "r3", "r3"), strict=True)))
    groups.make("gang", least=4)
    groups.join("gang", *GANG, gated=True)
    assert set(bound(scene, *GANG)) == set(nodes[2:])


MOMENTS: Final = [
    pytest.param("before-1", marks=pytest.mark.matrix),
    "before-2",
    pytest.param("before-3", marks=pytest.mark.matrix),
    "before-4",
    pytest.param("after-4", marks=pytest.mark.matrix),
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_next_leader_finishes(
    scene: Scene, groups: PodGroups, start_controller: Start, armed: Path, moment: str
) -> None:
    """A gang of two takes two names and two gates. The leader is killed between any of them."""
    machines(scene, 2, 0, 1)
    old = start_old(start_controller, armed, *NAMES_NODES, moment=moment)
    groups.make("gang", least=2)
    with components.stopped(scene.cluster):
        groups.join("gang", *GANG[:2], gated=True)
        old.wait_stopped()
        old.kill()
        new = start_controller(*SHORT_LEASE, *NAMES_NODES, name="replica-new")
        new.wait_for_log("begins")
        wait_until(lambda: not groups.gated(GANG[:2]), LIMIT, "the gates lifted")
        assert len({named(scene, name) for name in GANG[:2]}) == 1
    assert len(set(bound(scene, *GANG[:2]))) == 1


def test_what_is_lost_between_name_and_attempt(
    scene: Scene, groups: PodGroups, start_controller: Start
) -> None:
    """Somebody else takes a card of the named node while kube-scheduler is away: nothing is half
    bound, and no member keeps a name."""
    start_controller(*NAMES_NODES).wait_for_log("begins")
    machines(scene, 1, 0, 1, 2, 3)
    groups.make("gang", least=4)
    with components.stopped(scene.cluster):
        scene.hands.start("thief", priorityClassName="system-node-critical")
        groups.join("gang", *GANG, gated=True)
        wait_until(lambda: not groups.gated(GANG), LIMIT, "the gates lifted")
        assert all(named(scene, name) for name in GANG)
    scene.eyes.bound("thief")
    wait_until(lambda: not any(named(scene, name) for name in GANG), LIMIT, "the names taken back")
    holds_nothing(groups, GANG)
    scene.hands.end("thief")
    scene.api.delete(RESOURCE_CLAIMS, "thief", namespace=scene.namespace)
    groups.wait_for_bound(GANG, 4)


def test_min_count_is_lowered_and_a_member_deleted_while_it_waits(
    scene: Scene, groups: PodGroups, start_controller: Start
) -> None:
    start_controller(*NAMES_NODES).wait_for_log("begins")
    machines(scene, 1, 0, 1)
    groups.make("gang", least=3)
    groups.join("gang", *GANG[:3], gated=True)
    scene.wait_for_event("gang", "2 of 3 pods fit together")
    scene.hands.end(GANG[0])
    groups.need("gang", 2)
    groups.wait_for_bound(GANG[1:3], 2)
