"""Many pods at once, or for long, cost one step each, and starve nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from controller.allocator.allocate import allocate, can_serve
from controller.placer import placer
from controller.queue import queueing_hints
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from tests.unit.controller.allocator.build import (
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.queue.old_pods import (
    at,
    decisions,
    rest,
    start,
)
from tests.unit.controller.world import World, node, pod


def test_a_burst_of_a_thousand_pods_takes_one_step_each() -> None:
    """There is a card for every other one."""
    slices = [
        each for n in range(100) for each in pool(f"n{n}", [device("whole", b) for b in range(5)])
    ]
    world = World(slices)
    for number in range(100):
        world.put(NODES, node(f"n{number}"))
    for number in range(1_000):
        start(world, f"p{number}", [request()], number)
    rest(world)
    served = [number for number in range(1_000) if world.node_of(f"p{number}")]
    assert served == list(range(500))
    assert decisions(world) == 500


def test_a_namespace_that_recreates_its_claims_starves_no_other(two_cards: World) -> None:
    """Each time all its 200 pods come up; they are older than the neighbour's."""
    world = two_cards
    made = claim("churned", [request(count=3)])
    for number in range(200):
        user = pod(f"p{number}", "churned")
        user["metadata"]["creationTimestamp"] = at(0)
        world.put(PODS, user)
    world.put(RESOURCE_CLAIMS, made)
    rest(world)
    for name in ("new0", "new1"):
        for obj, resource in ((claim(name), RESOURCE_CLAIMS), (pod(name, name), PODS)):
            obj["metadata"] |= {"namespace": "neighbour", "creationTimestamp": at(600)}
            world.put(resource, obj)
    turns = 0
    while world.node_of("new0") is None or world.node_of("new1") is None:
        if turns % 3 == 0:  # a claim's own step goes before those of pods
            world.remove(RESOURCE_CLAIMS, "churned")
            world.put(RESOURCE_CLAIMS, made)
        world.worker.run_once(0)
        turns += 1
        assert turns < 20


@pytest.fixture
def two_cards() -> World:
    """Two free cards."""
    return World(pool("b", [device("whole", 0), device("whole", 1)]))


@dataclass
class Calls:
    """How often the deciding thread asks the allocator."""

    decisions: int = 0
    hints: int = 0


def counted(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()

    def decide(*args: Any, **kwargs: Any) -> Any:
        calls.decisions += 1
        return allocate(*args, **kwargs)

    def hint(*args: Any, **kwargs: Any) -> Any:
        calls.hints += 1
        return can_serve(*args, **kwargs)

    monkeypatch.setattr(placer, "allocate", decide)
    monkeypatch.setattr(queueing_hints, "can_serve", hint)
    return calls


@pytest.mark.parametrize("waiting", [10, 1_000])
def test_a_release_costs_the_same_however_many_wait(
    waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ask for more cards than any node has, in two ways."""
    world = World(pool("b", [device("whole", 0), device("whole", 1)]))
    world.put(RESOURCE_CLAIMS, allocated("held", "b", "whole-0000-00-00-0"))
    for number in range(waiting):
        start(world, f"old{number}", [request(count=3 + number % 2)], number % 3_000)
    rest(world)
    calls = counted(monkeypatch)
    world.remove(RESOURCE_CLAIMS, "held")
    world.run_until_idle()
    assert calls == Calls(decisions=0, hints=2)
    world.ask("new", "new")
    while world.node_of("new") is None:
        world.worker.run_once(0)
    assert calls == Calls(decisions=1, hints=2)
