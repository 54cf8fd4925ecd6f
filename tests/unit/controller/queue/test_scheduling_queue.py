"""Pods that nothing can serve keep nobody waiting, and cost no looks when devices become free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from controller.allocator.allocate import allocate, can_serve
from controller.queue import queueing_hints
from controller.reconcile import reconciler
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
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
from tests.unit.controller.world import FAIRNESS, World, node, pod

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


def rest(world: World) -> None:
    """Let it do all that is due, however much that is."""
    while world.worker.next_wakeup() == 0 or len(world.events):
        world.worker.run_once(0)


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

    monkeypatch.setattr(reconciler, "allocate", decide)
    monkeypatch.setattr(queueing_hints, "can_serve", hint)
    return calls


@pytest.mark.parametrize("waiting", [10, 10_000])
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
    world.put(RESOURCE_CLAIMS, claim("new"))
    world.put(PODS, pod("new", "new"))
    while world.node_of("new") is None:
        world.worker.run_once(0)
    assert calls == Calls(decisions=1, hints=2)
