"""Pods that nothing can serve keep nobody waiting, and cost no looks when devices become free."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from tests.unit.controller.allocator.build import (
    allocated,
    claim,
    device,
    first_available,
    pool,
    request,
)
from tests.unit.controller.queue.old_pods import (
    CHANGES,
    OLD,
    OLD_PODS,
    bound,
    decisions,
    elsewhere,
    mixed,
    of_a_class_that_does_not_exist,
    release_of_another_driver,
    release_of_ours,
    slices_of_another_driver,
    start,
    too_many,
    with_old_pods,
)
from tests.unit.controller.world import FAIRNESS, World, node, pod


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", OLD_PODS)
def test_a_new_pod_does_not_wait_for_those_that_nothing_can_serve(
    kind: Callable[[World, str, int], None], change: Callable[[World, int], None]
) -> None:
    world = with_old_pods(kind)
    for number in range(4):
        change(world, number)
        world.worker.run_once(0)
    start(world, "new", [request()], created=OLD)
    turns = 0
    while world.node_of("new") is None and turns < 2000:
        if turns % 10 == 0:
            change(world, turns // 10)
        world.worker.run_once(0)
        turns += 1
    assert world.node_of("new") == "b"
    assert turns <= OLD + 10


@pytest.mark.parametrize(
    "change", [release_of_ours, release_of_another_driver, slices_of_another_driver]
)
@pytest.mark.parametrize(
    "kind", [too_many, elsewhere, bound, of_a_class_that_does_not_exist, mixed]
)
def test_an_event_that_helps_no_pod_costs_no_step(
    kind: Callable[[World, str, int], None], change: Callable[[World, int], None]
) -> None:
    world = with_old_pods(kind)
    before = decisions(world)
    for number in range(10):
        change(world, number)
        world.run_until_idle()
    assert decisions(world) == before


def test_a_freed_card_costs_one_step_of_the_pod_that_gets_it() -> None:
    world = World(pool("b", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("held", "b", "whole-0000-00-00-0"))
    for number in range(OLD):
        start(world, f"old{number}", [request()], number)
    for _ in range(4):
        world.run_until_idle()
    before = decisions(world)
    world.remove(RESOURCE_CLAIMS, "held")
    world.run_until_idle()
    assert world.node_of("old0") == "b"
    assert decisions(world) == before


def test_of_several_freed_cards_each_gets_a_pod_in_order() -> None:
    world = World(pool("b", [device("whole", bus) for bus in range(3)]))
    for bus in range(3):
        world.put(RESOURCE_CLAIMS, allocated(f"held{bus}", "b", f"whole-0000-0{bus}-00-0"))
    start(world, "large", [request(count=4)])
    for number in range(5):
        start(world, f"p{number}", [request()], 10 - number)
    world.run_until_idle()
    for bus in range(3):
        world.remove(RESOURCE_CLAIMS, f"held{bus}")
    world.run_until_idle()
    assert [n for n in range(5) if world.node_of(f"p{n}")] == [2, 3, 4]


def test_pods_of_one_second_are_served_in_the_order_in_which_they_came() -> None:
    world = World(pool("b", [device("whole", 0)]))
    names = ["first", "second", "third"]
    for name in names:
        world.put(PODS, pod(name, name))
    world.run_until_idle()
    for name in reversed(names):
        world.put(RESOURCE_CLAIMS, claim(name, [request()]))
    world.run_until_idle()
    assert [name for name in names if world.node_of(name)] == ["first"]


def test_a_slice_that_helps_serves_at_once_whatever_was_in_vain_before() -> None:
    world = World(pool("b", [device("whole", 0)]))
    start(world, "p", [request(count=2)])
    world.run_until_idle()
    for numa in (0, 1, 0, 1):
        for each in pool("b", [device("whole", 0, numa=numa)]):
            world.put(RESOURCE_SLICES, each)
        world.run_until_idle()
    for each in pool("b", [device("whole", 0), device("whole", 1)]):
        world.put(RESOURCE_SLICES, each)
    world.run_until_idle()
    assert world.node_of("p") == "b"


def test_a_class_that_is_made_serves_a_pod_that_was_refused() -> None:
    world = World()
    start(world, "p", [request(), request("y", cls="mine")])
    world.run_until_idle()
    assert world.node_of("p") is None
    selector = {"cel": {"expression": 'device.driver == "gcu.enflame.com"'}}
    made = {"metadata": {"name": "mine"}, "spec": {"selectors": [selector]}}
    world.put(DEVICE_CLASSES, made)
    world.run_until_idle()
    assert world.node_of("p") is not None


def test_a_pod_that_was_refused_is_served_when_its_requests_prove_to_be_ours() -> None:
    """A class that does not name the driver is ours once a device of ours matches it."""
    world = World([])
    selector = {"cel": {"expression": 'device.driver.endsWith(".enflame.com")'}}
    any_of_vendor = {"metadata": {"name": "any"}, "spec": {"selectors": [selector]}}
    world.put(DEVICE_CLASSES, any_of_vendor)
    start(world, "p", [request(), request("y", cls="any")])
    world.run_until_idle()
    assert any("other drivers" in told or "mix" in told for told in world.recorder.notes)
    for each in pool("b", [device("whole", 0), device("whole", 1)]):
        world.put(RESOURCE_SLICES, each)
    world.after(FAIRNESS)
    assert world.node_of("p") == "b"


def flap(world: World, second: int) -> None:
    """The node fits the pods of zone `x` in every other second."""
    made = node("b")
    made["metadata"]["labels"] = {"zone": "x" if second % 2 else "y", "at": str(second)}
    world.put(NODES, made)


def test_flapping_node_labels_that_help_no_pod_cost_no_step() -> None:
    world = World()
    start(world, "too-many", [request(count=8)], nodeSelector={"zone": "x"})
    start(world, "elsewhere", [request()], nodeSelector={"zone": "z"})
    world.run_until_idle()
    before = decisions(world)
    for second in range(60):
        flap(world, second)
        world.after(1.0)
    assert decisions(world) == before


def either_or() -> World:
    """A pod of zone `x`: what is found for it, a card beside a DRS instance, its container may not
    have."""
    world = World(pool("b", [device(mode, bus) for bus in (0, 1) for mode in ("whole", "drs")]))
    either = first_available("x", request("small", cls="drs-gcu.enflame.com"), request("large"))
    start(world, "p", [either, request("y")], nodeSelector={"zone": "x"})
    world.run_until_idle()
    return world


def test_one_event_makes_a_pod_active_once() -> None:
    world = either_or()
    before = decisions(world)
    flap(world, 1)
    world.run_until_idle()
    world.after(20.0)
    assert decisions(world) == before + 1


def test_where_they_seem_to_help_the_pod_comes_up_more_and_more_rarely() -> None:
    world = either_or()
    before, looks = decisions(world), []
    for second in range(60):
        flap(world, second)
        world.after(1.0)
        looks.append(decisions(world) - before)
    assert looks[-1] <= 10
    assert looks[-1] - looks[-21] >= 1


def test_where_they_help_the_pod_is_served_at_once() -> None:
    world = World()
    start(world, "p", [request()], nodeSelector={"zone": "x"})
    world.run_until_idle()
    flap(world, 1)
    world.run_until_idle()
    assert world.node_of("p") == "b"
