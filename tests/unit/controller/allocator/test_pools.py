"""Which pools count, and on which nodes their devices can be used."""

from __future__ import annotations

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import parse_claim
from controller.allocator.inventory import Inventory
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.hidden_device import hide
from tests.unit.controller.allocator.build import (
    ANY,
    TAINT,
    UNHEALTHY,
    claim,
    device,
    plain,
    pool,
    request,
    resource_slice,
    state,
)
from tests.unit.controller.allocator.decide import SELECTORS, cards, decide, names, whole

EVERYWHERE: Object = {"nodeSelectorTerms": [{}]}

NODES: dict[str, tuple[Object, str]] = {
    "the slice's node": ({}, "a"),
    "a slice that is hidden from kube-scheduler": ({"nodeSelector": EVERYWHERE}, "a"),
}
SEVERAL: dict[str, tuple[Object, Object]] = {
    "all nodes": ({"allNodes": True}, {}),
    "the device's node": ({"perDeviceNodeSelection": True}, {"nodeName": "b"}),
}


@pytest.mark.parametrize(("spec", "node"), NODES.values(), ids=NODES)
def test_a_pool_is_of_one_node(spec: Object, node: str) -> None:
    slices = [resource_slice("a", [plain("p")], **spec)]
    assert decide(slices, [], claim("c", [request(cls=ANY)])) == (node, ["p"])


@pytest.mark.parametrize(("spec", "device"), SEVERAL.values(), ids=SEVERAL)
def test_devices_of_several_nodes_are_refused_by_name(spec: Object, device: Object) -> None:
    slices = [resource_slice("a", [plain("p", **device)], **spec)]
    assert decide(slices, [], claim("c", [request(cls=ANY)])) == (
        "pool gcu.enflame.com/a has devices of several nodes, which only kube-scheduler allocates"
    )


def test_slices_of_different_nodes_in_one_pool() -> None:
    slices = [resource_slice("a", [plain(f"d{n}")], index=n, count=2) for n in (0, 1)]
    slices[1]["spec"]["nodeName"] = "b"
    assert decide(slices, [], claim("c", [request(cls=ANY)])) == (
        "pool gcu.enflame.com/a is invalid: it has slices of several nodes"
    )


def test_the_newest_generation_alone_counts() -> None:
    slices = [
        resource_slice("a", cards(2), generation=1),
        resource_slice("a", cards(1), generation=2),
    ]
    inventory = Inventory.of(slices)
    assert [each.id.name for each in inventory.devices_of("a")] == names("whole", 0)


def test_slices_are_learnt_one_by_one() -> None:
    inventory = Inventory()
    old = resource_slice("a", cards(1), generation=1)
    halves = [
        resource_slice("a", cards(2)[half : half + 1], index=half, count=2, generation=2)
        for half in (0, 1)
    ]
    inventory.put(old)
    assert len(inventory.devices_of("a")) == 1
    inventory.put(halves[0])
    assert len(inventory.devices_of("a")) == 0
    assert "incomplete: 1 of 2" in inventory.problems["a"]
    inventory.put(halves[1])
    assert len(inventory.devices_of("a")) == 2
    assert not inventory.problems
    for each in (old, *halves):
        inventory.remove(each)
    assert not inventory.devices_of("a")
    assert inventory.node_of("gcu.enflame.com/a") is None


def test_a_pool_that_is_withheld_has_that_problem_and_no_devices() -> None:
    inventory = Inventory()
    inventory.withhold("gcu.enflame.com/a", "a pod has one of them")
    inventory.put(resource_slice("a", cards(2)))
    inventory.put(resource_slice("b", cards(1)))
    assert inventory.problems == {"a": "a pod has one of them"}
    assert [len(inventory.devices_of(node)) for node in "ab"] == [0, 1]
    inventory.put(resource_slice("a", cards(3)))
    assert len(inventory.devices_of("a")) == 0
    inventory.withhold("gcu.enflame.com/a", "")
    assert not inventory.problems
    assert len(inventory.devices_of("a")) == 3


def test_a_node_has_the_problems_of_all_its_pools() -> None:
    inventory = Inventory()
    for name, problem in (("two", "it is lost"), ("one", "it is unclear"), ("three", "")):
        part = resource_slice("a", cards(1))
        part["spec"]["pool"]["name"] = name
        inventory.put(part)
        inventory.withhold(name, problem)
    assert inventory.problems == {"a": "it is unclear; it is lost"}
    inventory.withhold("one", "")
    assert inventory.problems == {"a": "it is lost"}
    inventory.withhold("two", "")
    assert not inventory.problems


def test_a_pool_that_grows_is_noticed() -> None:
    found = state(pool("a", cards(1)), selectors=SELECTORS)
    wanted = [parse_claim(claim("c", [request(count=2)]), found.classes)]
    some = [f"n{number}" for number in range(20)]  # so many that they are ranked
    nodes = found.numbers.set_of([*some, "a"])
    assert not isinstance(allocate(found, wanted, nodes), Allocation)
    found.inventory.put(resource_slice("a", cards(2)))
    outcome = allocate(found, wanted, nodes)
    assert isinstance(outcome, Allocation)
    assert [grant.device.id.name for grant in outcome.assignments[0]] == names("whole", 0, 1)


def test_devices_are_of_one_kind_whenever_their_taints_were_added() -> None:
    """The API server sets the time: it differs on every node."""
    slices = []
    for second, node in enumerate(("n1", "n2")):
        taint = UNHEALTHY | {"timeAdded": f"2026-01-01T00:00:0{second}Z"}
        slices += pool(node, [device("whole", 1, taints=[taint])])
    healthy = pool("n3", [device("whole", 1)])
    inventory = Inventory.of([*slices, *healthy])
    inventory.refresh()
    [[one], [other], [differs]] = [inventory.devices_of(name) for name in ("n1", "n2", "n3")]
    assert one.kind is other.kind
    assert one.kind is not differs.kind


def test_pools_of_other_drivers_are_none_of_our_business() -> None:
    incomplete = resource_slice("a", cards(1), count=2, driver="gpu.example.com")
    everything = claim("c", [request(allocationMode="All")])
    outcome = decide([incomplete, *pool("a", cards(1))], [], everything)
    assert outcome == ("a", whole(0))


@pytest.mark.parametrize(("healthy", "served"), [(True, True), (False, False)])
def test_devices_of_a_hidden_slice_have_taints_and_shares(healthy: bool, served: bool) -> None:
    """The API servers that need hidden slices store neither."""
    taints = [TAINT] if healthy else [TAINT, UNHEALTHY]
    hidden = hide(device("shared", 1, taints=taints))
    slices = [resource_slice("a", [hidden], nodeSelector=EVERYWHERE)]
    wanted = request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})
    outcome = decide(slices, [], claim("c", [wanted]))
    refusal = "1 card: 1 unhealthy; 1 requested"
    assert outcome == (("a", ["shared-0000-01"]) if served else refusal)
