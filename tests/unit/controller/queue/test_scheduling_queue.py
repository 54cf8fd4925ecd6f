"""Pods that nothing can serve keep nobody waiting, and cost no looks when devices become free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claim import Object
from tests.unit.controller.allocator.build import (
    OTHER_CLASS,
    allocated,
    claim,
    device,
    first_available,
    pool,
    request,
)
from tests.unit.controller.world import World, node, pod

OLD = 20
OTHER = "gpu.example.com"


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def start(world: World, name: str, asked: list[Object], created: int = 0, **spec: Any) -> None:
    world.put(RESOURCE_CLAIMS, claim(name, asked))
    made = pod(name, name, **spec)
    made["metadata"]["creationTimestamp"] = at(created)
    world.put(PODS, made)


def too_many(world: World, name: str, created: int) -> None:
    start(world, name, [request(count=8)], created)


def elsewhere(world: World, name: str, created: int) -> None:
    """The only node that it may run on has no card left."""
    start(world, name, [request()], created, nodeSelector={"zone": "full"})


def of_a_class_that_does_not_exist(world: World, name: str, created: int) -> None:
    start(world, name, [request(cls="shared-gcu.enflame.com"), request("y", cls="none")], created)


def mixed(world: World, name: str, created: int) -> None:
    start(world, name, [request(), request("y", cls=OTHER_CLASS["metadata"]["name"])], created)


def refused_what_is_found(world: World, name: str, created: int) -> None:
    """A container cannot have a DRS instance beside a card."""
    either = first_available("x", request("small", cls="drs-gcu.enflame.com"), request("large"))
    start(world, name, [either, request("y")], created)


OLD_PODS = (too_many, elsewhere, of_a_class_that_does_not_exist, mixed, refused_what_is_found)


def release_of_ours(world: World, _: int) -> None:
    """A card becomes free and is taken at once, now and then."""
    held = allocated("held", "b", "whole-0000-01-00-0")
    if (RESOURCE_CLAIMS, "held") in world.port.live:
        world.remove(RESOURCE_CLAIMS, "held")
    else:
        world.put(RESOURCE_CLAIMS, held)


def release_of_another_driver(world: World, _: int) -> None:
    other = allocated("other", "b", "gpu-0")
    for result in other["status"]["allocation"]["devices"]["results"]:
        result |= {"driver": OTHER, "pool": "b"}
    if (RESOURCE_CLAIMS, "other") in world.port.live:
        world.remove(RESOURCE_CLAIMS, "other")
    else:
        world.put(RESOURCE_CLAIMS, other)


def slices_of_another_driver(world: World, number: int) -> None:
    for each in pool("b", [{"name": f"gpu-{number}"}], driver=OTHER):
        each["metadata"]["name"] = "others"
        world.put(RESOURCE_SLICES, each)


def slices_of_ours(world: World, number: int) -> None:
    """Whatever they say, they are not looked at by all for ever."""
    numa = number % 2
    for each in pool(
        "c", [device("whole", 0, numa=numa, taints=[{"key": "x", "effect": "NoSchedule"}])]
    ):
        world.put(RESOURCE_SLICES, each)


CHANGES = (
    release_of_ours,
    release_of_another_driver,
    slices_of_another_driver,
    slices_of_ours,
)


def with_old_pods(kind: Callable[[World, str, int], None]) -> World:
    """Node `a` is full; `b` has cards, of which one is in use."""
    modes = ("whole", "drs")
    world = World(
        [
            *pool("a", [device("whole", 0)]),
            *pool("b", [device(mode, bus) for bus in range(4) for mode in modes]),
        ]
    )
    full = node("a")
    full["metadata"]["labels"] = {"zone": "full"}
    world.put(NODES, full)
    world.put(RESOURCE_CLAIMS, allocated("full", "a", "whole-0000-00-00-0"))
    world.put(RESOURCE_CLAIMS, allocated("held", "b", "whole-0000-01-00-0"))
    for number in range(OLD):
        kind(world, f"old{number}", number)
    for _ in range(4):
        world.settle()
    return world


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


def decisions(world: World) -> float:
    return world.metric("gcu_controller_unsatisfied_total")


@pytest.mark.parametrize(
    "change", [release_of_ours, release_of_another_driver, slices_of_another_driver]
)
@pytest.mark.parametrize("kind", [too_many, elsewhere, of_a_class_that_does_not_exist, mixed])
def test_what_helps_no_pod_costs_no_look(
    kind: Callable[[World, str, int], None], change: Callable[[World, int], None]
) -> None:
    world = with_old_pods(kind)
    before = decisions(world)
    for number in range(10):
        change(world, number)
        world.settle()
    assert decisions(world) == before


def test_a_freed_card_costs_the_look_at_the_pod_that_gets_it() -> None:
    world = World(pool("b", [device("whole", 0)]))
    world.put(RESOURCE_CLAIMS, allocated("held", "b", "whole-0000-00-00-0"))
    for number in range(OLD):
        start(world, f"old{number}", [request()], number)
    for _ in range(4):
        world.settle()
    before = decisions(world)
    world.remove(RESOURCE_CLAIMS, "held")
    world.settle()
    assert world.node_of("old0") == "b"
    assert decisions(world) == before


def test_of_several_freed_cards_each_gets_a_pod_in_order() -> None:
    world = World(pool("b", [device("whole", bus) for bus in range(3)]))
    for bus in range(3):
        world.put(RESOURCE_CLAIMS, allocated(f"held{bus}", "b", f"whole-0000-0{bus}-00-0"))
    start(world, "large", [request(count=4)])
    for number in range(5):
        start(world, f"p{number}", [request()], 10 - number)
    world.settle()
    for bus in range(3):
        world.remove(RESOURCE_CLAIMS, f"held{bus}")
    world.settle()
    assert [n for n in range(5) if world.node_of(f"p{n}")] == [2, 3, 4]


def test_a_slice_that_helps_serves_at_once_whatever_was_in_vain_before() -> None:
    world = World(pool("b", [device("whole", 0)]))
    start(world, "p", [request(count=2)])
    world.settle()
    for numa in (0, 1, 0, 1):
        for each in pool("b", [device("whole", 0, numa=numa)]):
            world.put(RESOURCE_SLICES, each)
        world.settle()
    for each in pool("b", [device("whole", 0), device("whole", 1)]):
        world.put(RESOURCE_SLICES, each)
    world.settle()
    assert world.node_of("p") == "b"


def test_a_class_that_is_made_serves_a_pod_that_was_refused() -> None:
    world = World()
    start(world, "p", [request(), request("y", cls="mine")])
    world.settle()
    assert world.node_of("p") is None
    selector = {"cel": {"expression": 'device.driver == "gcu.enflame.com"'}}
    made = {"metadata": {"name": "mine"}, "spec": {"selectors": [selector]}}
    world.put(DEVICE_CLASSES, made)
    world.settle()
    assert world.node_of("p") is not None


def test_changes_of_nodes_bring_up_a_pod_more_and_more_rarely() -> None:
    world = World()
    start(world, "p", [request(count=8)])
    world.settle()
    before, looks = decisions(world), []
    for second in range(60):
        made = node("c")
        made["metadata"]["labels"] = {"at": str(second)}
        world.put(NODES, made)
        world.after(1.0)
        looks.append(decisions(world) - before)
    assert looks[-1] <= 10
    assert looks[-1] - looks[-11] >= 1
