"""kube-scheduler comes to replicas that depend on each other in the order of their allocations."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim
from tests.unit.controller.world import World, node, pod

HOSTNAME = "kubernetes.io/hostname"


def spread(over: str) -> Object:
    return {
        "topologySpreadConstraints": [
            {
                "topologyKey": over,
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    }


def apart(over: str) -> Object:
    term = {"topologyKey": over, "labelSelector": {"matchLabels": {"app": "x"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


@pytest.mark.parametrize(
    ("spec", "at_once"),
    [
        pytest.param({}, 2, id="none"),
        pytest.param(spread("zone"), 1, id="spread over zones"),
        pytest.param(apart(HOSTNAME), 2, id="apart on nodes, which kube-scheduler looks at"),
        pytest.param(apart("zone"), 1, id="apart in zones"),
    ],
)
def test_one_allocation_after_the_other(spec: Object, at_once: int) -> None:
    world = World()
    for name in ("a", "b"):
        found = node(name)
        found["metadata"]["labels"] = {"zone": name}
        world.put(NODES, found)
    world.pool.is_paused = True
    for name in ("one", "two"):
        world.put(RESOURCE_CLAIMS, claim(name))
        made = pod(name, name, **spec)
        made["metadata"]["labels"] = {"app": "x"}
        owner = {"kind": "ReplicaSet", "name": "r", "uid": "uid-r", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        world.put(PODS, made)
    world.run_until_idle()
    assert len(world.pool.submitted) == at_once
    world.pool.resume()
    world.run_until_idle()
    assert None not in {world.node_of("one"), world.node_of("two")}
