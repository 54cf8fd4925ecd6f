"""kube-scheduler comes to replicas that depend on each other in the order of their allocations."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
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


def replicas(world: World, spec: Object) -> None:
    """Two pods of one workload, `one` and `two`, each with a claim of its name."""
    for name in ("a", "b"):
        found = node(name)
        found["metadata"]["labels"] = {"zone": name}
        world.put(NODES, found)
    for name in ("one", "two"):
        world.put(RESOURCE_CLAIMS, claim(name))
        made = pod(name, name, **spec)
        made["metadata"]["labels"] = {"app": "x"}
        owner = {"kind": "ReplicaSet", "name": "r", "uid": "uid-r", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        world.put(PODS, made)


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
    world.pool.is_paused = True
    replicas(world, spec)
    world.run_until_idle()
    world.pool.resume()
    assert [world.node_of("one"), world.node_of("two")].count(None) == 2 - at_once
    world.run_until_idle()
    assert None not in {world.node_of("one"), world.node_of("two")}


def test_with_gates_these_are_lifted_one_after_the_other() -> None:
    world = World()
    world.pool.is_paused = True
    replicas(world, spread("zone") | {"schedulingGates": [{"name": SCHEDULING_GATE}]})
    world.run_until_idle()
    world.pool.resume()
    assert None not in {world.node_of("one"), world.node_of("two")}
    gates = [world.api.live[PODS, name]["spec"]["schedulingGates"] for name in ("one", "two")]
    assert [len(each) for each in gates] == [0, 1]
    world.run_until_idle()
    assert not world.api.live[PODS, "two"]["spec"]["schedulingGates"]
