"""Replicas of one workload keep apart, where the policy or their claims say spread."""

from __future__ import annotations

import pytest

from controller.allocator.policy import Policy
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claim import Object, results
from dra_driver.model.names import DRIVER
from dra_driver.model.packing import Packing
from tests.unit.controller.allocator.build import allocated, claim, device, pool, request
from tests.unit.controller.allocator.decide import SHARED, names
from tests.unit.controller.world import World, pod

BINPACK, SPREAD = Packing.BINPACK, Packing.SPREAD
BOTH, NODES, CARDS = Policy(SPREAD, SPREAD), Policy(nodes=SPREAD), Policy(cards=SPREAD)
# Spread without a look at replicas would always take node a: two cards of b are somebody's.
OTHERS = allocated("others", "b", *names("whole", 2, 3))


def world(policy: Policy) -> World:
    cards = [device(mode, bus) for bus in range(4) for mode in ("whole", "shared")]
    made = World([*pool("a", cards), *pool("b", cards)], policy=policy)
    made.put(RESOURCE_CLAIMS, OTHERS)
    return made


def replica(
    world: World, name: str, workload: str | None = "rs", config: list[Object] | None = None
) -> None:
    """A pod of the workload with a claim of two slices."""
    asked = request(cls=SHARED, capacity={"slices": "2"})
    world.put(RESOURCE_CLAIMS, claim(name, [asked], config=config or []))
    made = pod(f"pod-{name}", name)
    if workload is not None:
        owners = [{"kind": "Other", "uid": "x"}, {"uid": workload, "controller": True}]
        made["metadata"]["ownerReferences"] = owners
    world.put(PODS, made)


def place(world: World, name: str) -> str:
    """Node and card of the replica, such as ``a1``."""
    [result] = results(world.claim(name))
    return f"{result.pool[-1]}{int(result.device.split('-')[2], 16)}"


CASES = {
    "packed": (Policy(), ["b0", "b0", "b0", "b1"]),
    "nodes and cards": (BOTH, ["a0", "b0", "a1", "b1"]),
    "nodes, with cards filled": (NODES, ["a0", "b0", "a0", "b0"]),
    "cards of a node, with nodes filled": (CARDS, ["b0", "b1", "b0", "b1"]),
}


@pytest.mark.parametrize(("policy", "places"), CASES.values(), ids=CASES)
def test_four_replicas(policy: Policy, places: list[str]) -> None:
    found = world(policy)
    for number in range(4):
        replica(found, f"c{number}")
        found.settle()
    assert [place(found, f"c{number}") for number in range(4)] == places


def test_all_at_once_while_nothing_is_written_yet() -> None:
    found = world(BOTH)
    found.hands.tied = True
    for number in range(4):
        replica(found, f"c{number}")
    found.settle()
    found.hands.untie()
    found.settle()
    assert {place(found, f"c{number}") for number in range(4)} == {"a0", "b0", "a1", "b1"}


@pytest.mark.parametrize("workload", ["another", None], ids=["another workload", "no workload"])
def test_only_replicas_keep_apart(workload: str | None) -> None:
    found = world(BOTH)
    replica(found, "one", workload)
    replica(found, "two")
    found.settle()
    assert (place(found, "one")[0], place(found, "two")[0]) == ("a", "a")


def test_pods_by_hand_are_no_replicas_of_each_other() -> None:
    found = world(BOTH)
    replica(found, "one", None)
    replica(found, "two", None)
    found.settle()
    assert (place(found, "one"), place(found, "two")) == ("a0", "a1")


def test_a_replica_that_has_ended_keeps_nobody_away() -> None:
    found = world(BOTH)
    replica(found, "one")
    found.settle()
    found.remove(PODS, "pod-one")
    replica(found, "two")
    found.settle()
    assert place(found, "two")[0] == "a"


def test_a_claim_that_says_so_itself() -> None:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": {"nodes": "spread"}}
    config = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    found = world(Policy())
    replica(found, "one", config=config)
    replica(found, "two", config=config)
    found.settle()
    assert {place(found, "one"), place(found, "two")} == {"a0", "b0"}


def test_a_device_that_vanished_from_its_slice_is_still_the_replicas() -> None:
    found = world(NODES)
    replica(found, "one")
    found.settle()
    published = found.port.live[RESOURCE_SLICES, "a-1-0"]
    held = names("shared", 0)[0]
    left = [each for each in published["spec"]["devices"] if each["name"] != held]
    found.put(RESOURCE_SLICES, {**published, "spec": {**published["spec"], "devices": left}})
    replica(found, "two")
    found.settle()
    assert (place(found, "one"), place(found, "two")) == ("a0", "b0")


def test_what_the_pod_itself_holds_keeps_it_from_nothing() -> None:
    found = World(pool("a", [device("shared", bus) for bus in range(2)]), policy=CARDS)
    found.put(RESOURCE_CLAIMS, allocated("x", "a", *names("shared", 0), consumed={"slices": "2"}))
    found.put(RESOURCE_CLAIMS, allocated("y", "a", *names("shared", 1), consumed={"slices": "3"}))
    found.put(RESOURCE_CLAIMS, claim("more", [request(cls=SHARED, capacity={"slices": "1"})]))
    owned = pod("p", "x", "more")
    owned["metadata"]["ownerReferences"] = [{"uid": "rs", "controller": True}]
    found.put(PODS, owned)
    found.settle()
    assert place(found, "more") == "a0"
