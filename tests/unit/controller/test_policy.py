"""The settings' policy reaches the decision."""

from __future__ import annotations

import pytest

from controller.allocator.policy import Packing, Policy
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
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
