"""What reaches the decision: the settings' policy, a claim's own before it, the nodes' room."""

from __future__ import annotations

import pytest

from controller.allocator.packing.policy import Policy
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.names import DRIVER
from tests.unit.controller.allocator.build import claim, pool
from tests.unit.controller.allocator.decide import cards
from tests.unit.controller.world import World, node, pod


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param(Policy(), {"a"}, id="binpack fills the smaller node"),
        pytest.param(Policy(nodes=Packing.SPREAD), {"b"}, id="spread takes the emptier one"),
    ],
)
def test_the_policy_chooses_the_node(policy: Policy, nodes: set[str]) -> None:
    world = World(policy=policy)
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert {world.node_of("c")} == nodes


def configured(name: str, **packing: str) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": packing}
    return claim(name, config=[{"opaque": {"driver": DRIVER, "parameters": parameters}}])


def test_a_claim_chooses_for_itself() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, configured("c", nodes="spread"))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert world.node_of("c") == "b"
    [entry] = world.claim("c")["status"]["allocation"]["devices"]["config"]
    assert entry["source"] == "FromClaim"


def test_invalid_configuration_is_reported_and_nothing_is_written() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, configured("c", node="spread"))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []
    assert [each.partition(":")[0] for each in world.recorder.notes] == ["Pod p", "ResourceClaim c"]
    assert all("the field packing.node is unknown" in each for each in world.recorder.notes)


def of(name: str, places: int) -> Object:
    """A node with room for so many pods."""
    found = node(name)
    return found | {"status": found["status"] | {"allocatable": {"pods": str(places)}}}


@pytest.mark.parametrize(
    ("places", "chosen"),
    [
        pytest.param((1, 1), "a", id="room on both"),
        pytest.param((0, 1), "b", id="none on the better one"),
        pytest.param((1, 0), "a", id="none on the other one"),
        pytest.param((0, 0), "a", id="none anywhere"),
    ],
)
def test_a_node_without_room_comes_last(places: tuple[int, int], chosen: str) -> None:
    world = World()
    for name, count in zip("ab", places, strict=True):
        world.put(NODES, of(name, count))
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert world.node_of("c") == chosen


def test_a_pod_that_waits_for_its_binding_takes_room() -> None:
    """Node a is the better one for both."""
    world = World([*pool("a", cards(3)), *pool("b", cards(4))])
    for name in "ab":
        world.put(NODES, of(name, 1))
    for name in ("one", "two"):
        world.put(RESOURCE_CLAIMS, claim(name))
        world.put(PODS, pod(name, name))
    world.run_until_idle()
    assert (world.node_of("one"), world.node_of("two")) == ("a", "b")


def test_the_nominated_node_is_tried_though_it_has_no_room() -> None:
    """Pods are being preempted there for this one."""
    world = World()
    world.put(NODES, of("a", 1))
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, pod("p", "c", status={"nominatedNodeName": "b"}))
    world.run_until_idle()
    assert world.node_of("c") == "b"
