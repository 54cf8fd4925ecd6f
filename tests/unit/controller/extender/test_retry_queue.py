"""Refused pods are tried again when they would fit, and not in herds."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from controller.extender.retry_queue import RetryQueue
from controller.leaderelection.fence import NotLeader
from dra_driver.kube.errors import Conflict, Invalid, NotFound, Unavailable
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError
from tests.unit.controller.extender.api import PodApi
from tests.unit.controller.extender.build import SHARED, of_workload, pod

POD = pod("a", {SHARED: 1})


class World:
    """`places` are the nodes with room."""

    def __init__(self) -> None:
        self.now = 0.0
        self.api = PodApi()
        self.places: set[str] = set()
        self.request = 0
        self.waiting = RetryQueue(
            self.api, fits=self.fits, clock=lambda: self.now, now_ns=lambda: 7
        )

    def fits(self, pod: Object, nodes: Collection[str] | None) -> bool:
        self.request += 1
        return bool(self.places if nodes is None else self.places & set(nodes))

    def retry_due(self, version: int) -> int:
        """Gives how many pods were told."""
        before = len(self.api.patches)
        self.waiting.retry_due(version)
        return len(self.api.patches) - before


@pytest.fixture
def world() -> World:
    world = World()
    world.waiting.add(POD, ["n", "m"])
    world.now = 10.0
    return world


def test_a_pod_that_would_fit_is_changed_so_that_it_is_tried_again(world: World) -> None:
    assert world.retry_due(1) == 0
    world.places = {"m"}
    assert world.retry_due(2) == 1
    patch = {"metadata": {"uid": "uid-a", "annotations": {"gcu.enflame.com/retry": "7"}}}
    assert world.api.patches == [("a", patch)]


@pytest.mark.parametrize(("asked", "told"), [(99, 0), (100, 1)], ids=["all", "enough of them"])
def test_a_place_that_was_not_asked_about_is_one(world: World, asked: int, told: int) -> None:
    """kube-scheduler leaves it at a hundred nodes, and comes back to the others in minutes."""
    world.waiting.add(POD, [f"full-{n}" for n in range(asked)])
    world.places = {"other"}
    assert world.retry_due(1) == told


def test_nothing_is_asked_twice_of_one_view(world: World) -> None:
    world.retry_due(1)
    world.retry_due(1)
    assert world.request == 1


def test_of_pods_that_ask_for_the_same_one_is_asked_about(world: World) -> None:
    for number in range(100):
        world.waiting.add(pod(f"p{number}", {SHARED: 1}), ["n", "m"])
    world.waiting.add(pod("larger", {SHARED: 2}), ["n", "m"])
    world.waiting.add(pod("elsewhere", {SHARED: 1}), ["o"])
    world.waiting.add(of_workload("rs", pod("of others", {SHARED: 1})), ["n", "m"])
    world.now = 20.0
    assert world.retry_due(1) == 0
    assert world.request == 4
    world.places = {"n"}
    assert world.retry_due(2) == 16


def test_a_pod_that_has_just_been_refused_is_left_to_kube_scheduler(world: World) -> None:
    world.places = {"n"}
    world.waiting.drop("uid-a")
    world.waiting.add(POD, ["n"])
    assert world.retry_due(1) == 0
    world.now += 2
    assert world.retry_due(1) == 1


def test_pauses_grow(world: World) -> None:
    world.places = {"n"}
    told = []
    for second in range(200):
        world.now = 10.0 + second
        world.waiting.add(POD, ["n"])
        if world.retry_due(second):
            told.append(second)
    assert told == [0, 4, 12, 28, 60, 120, 180]


@pytest.mark.parametrize("how", ["drop", "keep"])
def test_a_pod_that_waits_no_longer_is_forgotten(world: World, how: str) -> None:
    world.places = {"n"}
    if how == "drop":
        world.waiting.drop("uid-a")
    else:
        world.waiting.retain({"uid-b"})
    assert world.retry_due(1) == 0
    assert len(world.waiting) == 0


def test_a_pod_that_is_gone_harms_nobody(world: World) -> None:
    world.places = {"n"}
    world.api.refusals["patch"] = [NotFound("no such pod")]
    world.waiting.add(pod("b", {SHARED: 1}), ["n"])
    world.now += 10
    assert world.retry_due(1) == 1


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (NotFound("no such pod"), 0),
        (Conflict("the UID is another one"), 0),
        (Invalid("a UID is immutable"), 0),
        (Unavailable("no answer"), 1),
        (NotLeader("the lease ended"), 1),
    ],
    ids=[
        "gone",
        "another of its name",
        "the same in other words",
        "no answer",
        "the lease ended meanwhile",
    ],
)
def test_what_the_server_answers_decides_who_goes_on_waiting(
    world: World, error: GcuError, left: int
) -> None:
    world.places = {"n"}
    world.api.refusals["patch"] = [error]
    world.retry_due(1)
    assert len(world.waiting) == left


def test_a_pod_that_kube_scheduler_does_not_come_back_to_is_forgotten(world: World) -> None:
    world.now = 800.0
    world.waiting.add(pod("b", {SHARED: 1}), ["n"])
    world.retry_due(1)
    assert len(world.waiting) == 2
    world.now = 1000.0  # deleted while it was being refused, the first one comes never again
    world.retry_due(2)
    assert len(world.waiting) == 1


def test_the_first_in_line_come_first_and_few_at_a_time(world: World) -> None:
    world.waiting.drop("uid-a")
    for n in range(40):
        each = pod(f"p{n:02}", {SHARED: 1})
        each["spec"]["priority"] = 1 if n == 39 else 0
        each["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{n:02}Z"
        world.waiting.add(each, ["n"])
    world.now += 10
    world.places = {"n"}
    assert world.retry_due(1) == 16
    assert [name for name, _ in world.api.patches[:3]] == ["p39", "p00", "p01"]
    assert world.retry_due(1) == 16
