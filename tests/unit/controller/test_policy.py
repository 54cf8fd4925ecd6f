"""The settings' policy reaches the decision, and a claim's own before it."""

from __future__ import annotations

import pytest

from controller.allocator.policy import Policy
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.model.packing import Packing
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.world import World, pod


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
    world.settle()
    assert {world.node_of("c")} == nodes


def configured(name: str, **packing: str) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": packing}
    return claim(name, config=[{"opaque": {"driver": DRIVER, "parameters": parameters}}])


def test_a_claim_chooses_for_itself() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, configured("c", nodes="spread"))
    world.put(PODS, pod("p", "c"))
    world.settle()
    assert world.node_of("c") == "b"
    [entry] = world.claim("c")["status"]["allocation"]["devices"]["config"]
    assert entry["source"] == "FromClaim"


def test_wrong_configuration_is_told_and_nothing_is_written() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, configured("c", node="spread"))
    world.put(PODS, pod("p", "c"))
    assert world.settle() == []
    assert [each.partition(":")[0] for each in world.ears.told] == ["Pod p", "ResourceClaim c"]
    assert all("the field packing.node is unknown" in each for each in world.ears.told)
