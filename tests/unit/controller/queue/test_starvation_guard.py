"""Who gets what is freed, and that nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from controller.allocating.reconciler import Reconciler
from controller.allocator.allocate import feasible
from controller.allocator.claim_request import parse_claim
from controller.allocator.nodes.node_set import NodeSet
from controller.cache.claims import MANAGER
from controller.placer.pod_claims import PodClaims
from controller.queue import starvation_guard
from controller.queue.queueing_hints import PodClass
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    allocated,
    claim,
    device,
    first_available,
    pool,
    request,
)
from tests.unit.controller.fake_api import written_by
from tests.unit.controller.world import FAIRNESS, World, pod, reserved

CARDS = ("whole-0000-00-00-0", "whole-0000-01-00-0")


def two_full_nodes(*modes: str) -> World:
    """Nodes `a` and `b` of two cards each, all in use, by claims named after node and card. A free
    card may be had whole, or in one of the `modes`."""
    cards = [device(mode, bus) for bus in (0, 1) for mode in ("whole", *modes)]
    world = World([each for node in "ab" for each in pool(node, cards)])
    for node in "ab":
        for number, card in enumerate(CARDS):
            world.put(RESOURCE_CLAIMS, allocated(f"{node}{number}", node, card))
    return world


def start(world: World, name: str, *asked: Object, count: int = 1, priority: int = 0) -> None:
    world.put(RESOURCE_CLAIMS, claim(name, asked or [request(count=count)]))
    made = pod(name, name, priority=priority)
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{int(world.time) % 60:02}Z"
    world.put(PODS, made)
    world.run_until_idle()


def free(world: World, name: str) -> None:
    """The claim is deleted."""
    world.remove(RESOURCE_CLAIMS, name)
    world.run_until_idle()


def test_a_freed_card_goes_by_priority_then_age() -> None:
    world = two_full_nodes()
    for name, priority in (("old", 0), ("urgent", 5), ("young", 0)):
        start(world, name, priority=priority)
        world.time += 1.0
    order = []
    for freed in ("a0", "a1", "b0"):
        free(world, freed)
        order += [n for n in ("old", "urgent", "young") if world.node_of(n) and n not in order]
    assert order == ["urgent", "old", "young"]


def test_a_new_pod_does_not_pass_pods_before_it_in_line() -> None:
    world = two_full_nodes()
    start(world, "urgent", priority=5)
    world.ask("late", "late")
    free(world, "a0")
    assert world.node_of("urgent") == "a"
    assert world.node_of("late") is None


def test_small_pods_take_what_the_large_one_cannot_use_for_a_while() -> None:
    world = two_full_nodes()
    start(world, "large", count=2)
    start(world, "small")
    free(world, "a0")
    assert world.node_of("small") == "a"


def starving() -> World:
    """`large` has waited so long that a node is kept for it: `a`, where one card is free."""
    world = two_full_nodes()
    start(world, "large", count=2)
    world.time += 1.0
    world.after(FAIRNESS - 2.0)
    free(world, "a0")
    world.after(1.0)
    return world


def test_then_a_node_is_reserved_for_it() -> None:
    world = starving()
    start(world, "small")
    assert world.node_of("small") is None
    assert "1 reserved for pod default/large" in world.recorder.notes[-1]
    free(world, "a1")
    assert world.node_of("large") == "a"


def test_another_node_is_reserved_when_the_pod_may_not_run_on_its_own() -> None:
    """It need not be patient again."""
    world = two_full_nodes()
    world.run_until_idle()
    reconciler = world.worker._reconciler
    assert isinstance(reconciler, Reconciler)
    guard, large, state = reconciler._line.guard, pod("large", "large"), world.worker._cache.state()
    wanted = [parse_claim(claim("large", [request(count=2)]), state.classes)]
    pod_class = PodClass.of(PodClaims(large, wanted))
    for now, nodes, left, kept in (
        (FAIRNESS - 1.0, "ab", (), None),
        (FAIRNESS, "ab", (), "a"),
        (FAIRNESS + 1.0, "ab", (), "a"),
        (FAIRNESS + 2.0, "b", ("a",), "b"),
    ):
        assert guard.reserve(large, 0.0, now, pod_class, state.numbers.set_of(nodes)) == left
        reservation = guard.reserved_against(pod("small", "small"))
        assert (None if reservation is None else reservation.nodes) == ((kept,) if kept else None)


def test_other_nodes_are_open_to_all() -> None:
    world = starving()
    start(world, "small")
    free(world, "b0")
    assert world.node_of("small") == "b"


def test_a_pod_of_higher_priority_may_use_the_reserved_node() -> None:
    world = starving()
    start(world, "urgent", priority=5)
    assert world.node_of("urgent") == "a"


def test_the_reservation_ends_when_the_pod_is_gone() -> None:
    world = starving()
    start(world, "small")
    world.remove(PODS, "large")
    world.run_until_idle()
    assert world.node_of("small") == "a"


def test_the_reservation_ends_with_the_leadership() -> None:
    """Another replica serves the pod, which then runs for days without an event."""
    world = starving()
    world.fence.close()
    world.run_until_idle()
    bound = world.api.live[PODS, "large"]
    world.put(PODS, bound | {"spec": bound["spec"] | {"nodeName": "b"}})
    served = reserved(allocated("large", "b", "whole-0000-02-00-0"), "large")
    served["metadata"]["managedFields"] = written_by(MANAGER)
    world.put(RESOURCE_CLAIMS, served)
    world.run_until_idle()
    world.lead("2")
    start(world, "small")
    assert world.node_of("small") == "a"


def test_the_reservation_ends_when_the_claim_of_the_pod_is_gone() -> None:
    """The pod may stay for ever."""
    world = starving()
    start(world, "small")
    free(world, "large")
    assert world.node_of("small") == "a"


def test_the_reservation_ends_when_no_empty_node_could_serve_the_pod() -> None:
    """Each node has lost a card."""
    world = starving()
    start(world, "small")
    for node in "ab":
        for each in pool(node, [device("whole", 0)]):
            world.put(RESOURCE_SLICES, each)
    world.run_until_idle()
    world.after(FAIRNESS)
    assert world.node_of("small") == "a"


def test_the_reservation_ends_when_the_pod_is_refused() -> None:
    """Its container would have a DRS instance beside a card."""
    world = two_full_nodes("drs")
    either = first_available("x", request("small", cls="drs-gcu.enflame.com"), request("large"))
    start(world, "refused", either, request("y"))
    world.after(FAIRNESS)
    start(world, "small")
    free(world, "a0")
    assert world.node_of("small") is None
    assert "1 reserved for pod default/refused" in world.recorder.notes[-1]
    free(world, "a1")
    assert any("would have 2 GCU devices" in each for each in world.recorder.notes)
    assert world.node_of("small") == "a"


def test_no_node_is_reserved_for_a_pod_that_no_empty_node_could_serve() -> None:
    world = two_full_nodes()
    start(world, "impossible", count=3)
    world.after(FAIRNESS)
    start(world, "small")
    free(world, "a0")
    assert world.node_of("small") == "a"


def test_the_node_is_found_once_for_a_class_and_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred pods that no node could serve, and that are due a node at the same time."""
    found: list[object] = []

    def counted(*args: Any, **policy: Any) -> NodeSet:
        found.append(args)
        return feasible(*args, **policy)

    monkeypatch.setattr(starvation_guard, "feasible", counted)
    world = two_full_nodes()
    for number in range(100):
        start(world, f"impossible{number}", count=3)
    for _ in range(4):
        world.after(FAIRNESS)
    assert len(found) == 1
    for each in pool("a", [device("whole", bus) for bus in range(3)]):
        world.put(RESOURCE_SLICES, each)
    for _ in range(4):
        world.after(FAIRNESS)
    assert len(found) <= 4
    start(world, "small")
    free(world, "a0")
    assert world.node_of("small") is None, "the node is reserved now that it could serve them"
