"""Which pods are kept from a node that did not admit one, and for how long."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.service import Metrics
from tests.unit.controller.extender.build import SHARED, of_workload, pod

FAILED = of_workload("w", pod("a", {SHARED: 1}))
NEXT = of_workload("w", pod("b", {SHARED: 1}))


class World:
    def __init__(self) -> None:
        self.now = 100.0
        self.refusals = AdmissionBackoff(
            Metrics(CollectorRegistry()).refused_by_node, lambda: self.now
        )

    def is_kept(self) -> bool:
        return "n" in self.refusals.excluded(NEXT, ["n"])

    def pause(self) -> int:
        """Seconds for which the next pod is kept from the node from now on."""
        begin = self.now
        while self.is_kept():
            self.now += 1
        return int(self.now - begin)


@pytest.fixture
def world() -> World:
    world = World()
    world.refusals.record_rejection(FAILED, "n")
    return world


def test_the_next_pod_is_kept_from_that_node_with_the_reason(world: World) -> None:
    assert world.refusals.excluded(NEXT, ["m", "n"]) == {
        "n": "it did not admit default/a of the same workload; it is tried again within 60 s"
    }


@pytest.mark.parametrize(
    "other",
    [of_workload("v", pod("c", {SHARED: 1})), pod("c", {SHARED: 1})],
    ids=["another workload", "made by hand"],
)
def test_nobody_else_is_kept_from_it(world: World, other: dict[str, object]) -> None:
    assert not world.refusals.excluded(other, ["n"])
    world.refusals.record_rejection(other, "m")
    assert not world.refusals.excluded(NEXT, ["m"])


def test_pauses_grow_while_pods_come_in_vain(world: World) -> None:
    pauses = []
    for _ in range(6):
        pauses.append(world.pause())
        world.refusals.record_rejection(FAILED, "n")
    assert pauses == [5, 10, 20, 40, 60, 60]


def test_pods_that_were_on_their_way_lengthen_nothing(world: World) -> None:
    for _ in range(10):
        world.refusals.record_rejection(FAILED, "n")
    assert world.pause() == 5


def test_a_node_that_took_pods_again_begins_anew(world: World) -> None:
    world.pause()
    world.refusals.record_rejection(FAILED, "n")
    world.now += world.pause() + 60
    world.refusals.count_expired()
    world.refusals.record_rejection(FAILED, "n")
    assert world.pause() == 5


def test_the_end_of_a_pause_is_counted_once(world: World) -> None:
    assert world.refusals.count_expired() == 0
    world.pause()
    assert [world.refusals.count_expired(), world.refusals.count_expired()] == [1, 1]
    world.now += 60
    assert world.refusals.count_expired() == 1


def test_a_replica_that_follows_keeps_no_old_ones(world: World) -> None:
    """Only the leader asks which pauses have ended, and every Job is another workload."""
    for number in range(100):
        world.now += 100
        world.refusals.record_rejection(of_workload(f"job-{number}", pod("c", {SHARED: 1})), "n")
    assert len(world.refusals._refusals) == 1
