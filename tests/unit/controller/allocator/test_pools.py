"""Which pools count, and on which nodes their devices can be used."""

from __future__ import annotations

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.inventory import Inventory
from controller.allocator.request import parse_claim
from dra_driver.model.claim import Object
from tests.unit.controller.allocator.build import (
    ANY,
    allocated,
    claim,
    node,
    plain,
    pool,
    request,
    resource_slice,
    state,
)
from tests.unit.controller.allocator.decide import SELECTORS, cards, decide, names, whole

GOLD = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}
    ]
}
NODES = [node("a", tier="gold"), node("b", tier="iron"), node("c", tier="gold")]

SCOPES: dict[str, tuple[Object, Object, list[str]]] = {
    "the slice's node": ({}, {}, ["a"]),
    "all nodes": ({"allNodes": True}, {}, ["a", "b", "c"]),
    "nodes that the slice selects": ({"nodeSelector": GOLD}, {}, ["a", "c"]),
    "the device's node": ({"perDeviceNodeSelection": True}, {"nodeName": "b"}, ["b"]),
    "the device's selector": ({"perDeviceNodeSelection": True}, {"nodeSelector": GOLD}, ["a", "c"]),
    "the device is for all nodes": (
        {"perDeviceNodeSelection": True},
        {"allNodes": True},
        ["a", "b", "c"],
    ),
    "the device says nothing": ({"perDeviceNodeSelection": True}, {}, []),
}


@pytest.mark.parametrize(("spec", "device", "expected"), SCOPES.values(), ids=SCOPES)
def test_scope(spec: Object, device: Object, expected: list[str]) -> None:
    slices = [resource_slice("a", [plain("p", **device)], **spec)]
    wanted = claim("c", [request(cls=ANY)])
    fitting = [
        name
        for name in ("a", "b", "c")
        if decide(slices, [], wanted, nodes=[name], objects=NODES) == (name, ["p"])
    ]
    assert fitting == expected


def test_a_device_for_several_nodes_is_given_once() -> None:
    slices = [resource_slice("a", [plain("p")], allNodes=True)]
    held = [allocated("x", "a", "p")]
    outcome = decide(slices, held, claim("c", [request(cls=ANY)]), objects=NODES)
    assert outcome == "3 devices: 3 held; 1 requested"


def test_an_unknown_node_is_not_selected() -> None:
    slices = [resource_slice("a", [plain("p")], nodeSelector=GOLD)]
    outcome = decide(slices, [], claim("c", [request(cls=ANY)]), nodes=["a"])
    assert outcome == "none of the 1 nodes that fit the pod publishes a device of gcu.enflame.com"


def test_the_newest_generation_alone_counts() -> None:
    slices = [
        resource_slice("a", cards(2), generation=1),
        resource_slice("a", cards(1), generation=2),
    ]
    inventory = Inventory.of(slices)
    assert [each.id.name for each in inventory.by_id.values()] == names("whole", 0)


def test_slices_are_learnt_one_by_one() -> None:
    inventory = Inventory()
    old = resource_slice("a", cards(1), generation=1)
    halves = [
        resource_slice("a", cards(2)[half : half + 1], index=half, count=2, generation=2)
        for half in (0, 1)
    ]
    inventory.put(old)
    assert len(inventory.by_id) == 1
    inventory.put(halves[0])
    assert len(inventory.by_id) == 0
    assert "incomplete: 1 of 2" in inventory.problems["gcu.enflame.com/a"]
    inventory.put(halves[1])
    assert len(inventory.by_id) == 2
    assert not inventory.problems
    for each in (old, *halves):
        inventory.remove(each)
    assert not inventory.by_id
    assert not inventory.nodes


def test_a_pool_that_grows_is_noticed() -> None:
    found = state(pool("a", cards(1)), selectors=SELECTORS)
    wanted = [parse_claim(claim("c", [request(count=2)]), found.classes)]
    nodes = [f"n{number}" for number in range(20)] + ["a"]  # so many that they are ranked
    assert not isinstance(allocate(found, wanted, nodes), Allocation)
    found.inventory.put(resource_slice("a", cards(2)))
    outcome = allocate(found, wanted, nodes)
    assert isinstance(outcome, Allocation)
    assert [grant.device.id.name for grant in outcome.grants[0]] == names("whole", 0, 1)


def test_pools_of_other_drivers_are_none_of_our_business() -> None:
    incomplete = resource_slice("a", cards(1), count=2, driver="gpu.example.com")
    everything = claim("c", [request(allocationMode="All")])
    outcome = decide([incomplete, *pool("a", cards(1))], [], everything)
    assert outcome == ("a", whole(0))


def test_a_pool_for_many_nodes_that_is_incomplete_concerns_them_all() -> None:
    nodes = [f"n{number:02}" for number in range(20)]
    found = state([each for name in nodes for each in pool(name, cards(1))], selectors=SELECTORS)
    wanted = [parse_claim(claim("c", [request(allocationMode="All")]), found.classes)]
    halves = [
        resource_slice("many", [plain(f"d{n}")], index=n, count=2, allNodes=True) for n in (0, 1)
    ]
    granted = [isinstance(allocate(found, wanted, nodes), Allocation)]
    for change, half in (
        (found.inventory.put, halves[0]),
        (found.inventory.put, halves[1]),
        (found.inventory.remove, halves[1]),
        (found.inventory.remove, halves[0]),
    ):
        change(half)
        granted.append(isinstance(allocate(found, wanted, nodes), Allocation))
    assert granted == [True, False, True, False, True]
