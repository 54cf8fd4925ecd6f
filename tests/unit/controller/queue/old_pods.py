"""Pods that nothing can serve, and events that help none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
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


def bound(world: World, name: str, created: int) -> None:
    """It was made on the node that has no card left."""
    start(world, name, [request()], created, nodeName="a")


def of_a_class_that_does_not_exist(world: World, name: str, created: int) -> None:
    start(world, name, [request(cls="shared-gcu.enflame.com"), request("y", cls="none")], created)


def mixed(world: World, name: str, created: int) -> None:
    start(world, name, [request(), request("y", cls=OTHER_CLASS["metadata"]["name"])], created)


def refused_what_is_found(world: World, name: str, created: int) -> None:
    """A container cannot have a DRS instance beside a card."""
    either = first_available("x", request("small", cls="drs-gcu.enflame.com"), request("large"))
    start(world, name, [either, request("y")], created)


OLD_PODS = (
    too_many,
    elsewhere,
    bound,
    of_a_class_that_does_not_exist,
    mixed,
    refused_what_is_found,
)


def release_of_ours(world: World, _: int) -> None:
    """A card becomes free and is taken at once, now and then."""
    held = allocated("held", "b", "whole-0000-01-00-0")
    if (RESOURCE_CLAIMS, "held") in world.api.live:
        world.remove(RESOURCE_CLAIMS, "held")
    else:
        world.put(RESOURCE_CLAIMS, held)


def release_of_another_driver(world: World, _: int) -> None:
    other = allocated("other", "b", "gpu-0")
    for result in other["status"]["allocation"]["devices"]["results"]:
        result |= {"driver": OTHER, "pool": "b"}
    if (RESOURCE_CLAIMS, "other") in world.api.live:
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
        world.run_until_idle()
    return world


def decisions(world: World) -> float:
    return world.metric("gcu_controller_unsatisfied_total")


def rest(world: World) -> None:
    """Let it do all that is due, however much that is."""
    while world.worker.next_wakeup() == 0 or len(world.events):
        world.worker.run_once(0)
