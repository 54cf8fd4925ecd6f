"""What watches bring, and what is gone when a list is made anew."""

from __future__ import annotations

import threading

import pytest
from prometheus_client import CollectorRegistry

from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.decide import UNREPORTED
from controller.extender.gcushare.annotator import AssignmentAnnotator
from controller.extender.retry_queue import RetryQueue
from controller.extender.service import Metrics
from controller.extender.watching import NodeHandler, PodHandler
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.api import PodApi
from tests.unit.controller.extender.build import (
    SHARED,
    address,
    card,
    hold,
    node,
    of_workload,
    pod,
    problem,
)

HINT = str(address(1))


class World:
    def __init__(self) -> None:
        lock = threading.Lock()
        self.cache = AnnotatedCluster()
        self.registry = CollectorRegistry()
        self.waiting = RetryQueue(
            PodApi(), fits=lambda *_: False, clock=lambda: 0.0, now_ns=lambda: 0
        )
        self.api = PodApi()
        annotator = AssignmentAnnotator(self.api, self.cache.cards, clock=lambda: 0.0)
        self.write_due = annotator.write_due
        self.nodes = NodeHandler(self.cache, lock, annotator)
        self.refusals = AdmissionBackoff(Metrics(self.registry).refused_by_node, lambda: 0.0)
        self.pods = PodHandler(self.cache, lock, self.waiting, annotator, self.refusals)

    def refused(self) -> float | None:
        return self.registry.get_sample_value("gcu_extender_refused_by_node_total")


@pytest.fixture
def world() -> World:
    world = World()
    world.nodes.on_replace([node("n", card(1)), node("m", card(1))])
    return world


def test_nodes_that_a_list_does_not_have_are_gone(world: World) -> None:
    world.nodes.on_replace([node("m", card(1))])
    assert problem(world.cache, "n") == UNREPORTED
    assert problem(world.cache, "m") == ""
    world.nodes.on_event(Change.DELETED, node("m", card(1)))
    assert problem(world.cache, "m") == UNREPORTED
    world.nodes.on_event(Change.ADDED, node("n", card(1)))
    assert problem(world.cache, "n") == ""


def test_pods_that_a_list_does_not_have_are_gone(world: World) -> None:
    bound = [pod(name, {SHARED: 1}, on="n", cards=HINT) for name in ("a", "b")]
    world.pods.on_replace([*bound, pod("other", {"cpu": "1"}, on="n")])
    assert world.cache.pods() == {"uid-a", "uid-b"}
    world.waiting.add(pod("w", {SHARED: 1}), ["n"])
    world.pods.on_replace(bound[1:])
    assert world.cache.pods() == {"uid-b"}
    assert len(world.waiting) == 0
    world.waiting.add(pod("b", {SHARED: 1}), ["n"])
    world.pods.on_replace(bound[1:])  # of its binding no watch has told
    assert len(world.waiting) == 0
    world.pods.on_event(Change.DELETED, bound[1])
    assert world.cache.pods() == frozenset()


@pytest.mark.parametrize(
    ("change", "now"),
    [
        (Change.MODIFIED, pod("w", {SHARED: 1}, on="n", cards=HINT)),
        (Change.DELETED, pod("w", {SHARED: 1})),
    ],
    ids=["bound", "deleted"],
)
def test_a_pod_waits_until_it_is_bound_or_deleted(
    world: World, change: Change, now: Object
) -> None:
    world.waiting.add(pod("w", {SHARED: 1}), ["n"])
    world.pods.on_event(Change.MODIFIED, pod("w", {SHARED: 1}))
    assert len(world.waiting) == 1
    world.pods.on_event(change, now)
    assert len(world.waiting) == 0


def test_pods_that_their_node_did_not_admit_are_counted_once(world: World) -> None:
    failed = of_workload("w", pod("a", {SHARED: 1}, on="n", cards=HINT, phase="Failed"))
    failed["status"]["reason"] = "UnexpectedAdmissionError"
    world.pods.on_event(Change.ADDED, failed)
    assert world.refused() == 0
    assert not world.refusals.excluded(failed, ["n"])  # it was over before we came
    world.pods.on_event(Change.ADDED, pod("b", {SHARED: 1}, on="n", cards=HINT))
    failed["metadata"] = {**failed["metadata"], "name": "b", "uid": "uid-b"}
    world.pods.on_event(Change.MODIFIED, failed)
    world.pods.on_event(Change.MODIFIED, failed)
    assert world.refused() == 1
    assert set(world.refusals.excluded(failed, ["m", "n"])) == {"n"}


def test_pods_are_told_when_their_node_tells_of_them(world: World) -> None:
    world.pods.on_event(Change.ADDED, pod("a", {SHARED: 1}, on="n", cards=HINT))
    world.write_due()
    assert not world.api.patches
    told = card(1, Mode.SHARED, hold("a"))
    world.nodes.on_event(Change.MODIFIED, node("n", told))
    world.write_due()
    assert [name for name, _ in world.api.patches] == ["a"]
    world.pods.on_event(Change.DELETED, pod("a", {SHARED: 1}, on="n", cards=HINT))
    world.nodes.on_event(Change.MODIFIED, node("n", told, card(2)))
    world.write_due()
    assert len(world.api.patches) == 1
