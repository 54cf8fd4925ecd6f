"""Replicas that are spread, while kube-scheduler allocates: one name on each node at a time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from controller.cache.pods import key_of
from controller.nominate.replica_names import ReplicaNames
from controller.write.commands import LiftGate
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocating.test_replicas_in_order import HOSTNAME, apart, spread
from tests.unit.controller.nominate.test_group_nominator import Cluster, asking, taken
from tests.unit.controller.test_pod_groups import OURS
from tests.unit.controller.world import pod

NO_CONSTRAINT: Mapping[str, Any] = MappingProxyType({})


class Names(ReplicaNames):
    """Notes the names of pods whose nodes are written."""

    def __init__(self) -> None:
        self.written: list[str] = []
        super().__init__(lambda command: self.written.append(command.key.name))

    def name(self, pod_name: str, node: str, spec: Object, workload: str = "w") -> None:
        found = pod(pod_name, **spec)
        self.add(LiftGate(key=key_of(found), pod=found, node=node, sequence=workload))


@pytest.mark.parametrize(
    ("spec", "workload", "written"),
    [
        (spread("zone"), "w", "p"),
        (spread(HOSTNAME), "w", "p"),
        (spread("zone"), "", "pqr"),
        (apart("zone"), "w", "pqr"),
        ({}, "", "pqr"),
    ],
)
def test_of_replicas_that_are_spread_one_on_a_node(
    spec: Object, workload: str, written: str
) -> None:
    names = Names()
    for pod_name, node in (("p", "a"), ("q", "a"), ("r", "b")):
        names.name(pod_name, node, spec, workload)
    assert "".join(names.written) == written
    names.end(key_of(pod("p")))
    assert "".join(names.written) == "pqr"


def test_other_nodes_and_other_workloads_do_not_wait() -> None:
    names = Names()
    names.name("p", "a", spread("zone"))
    names.name("q", "b", spread("zone"))
    names.name("other", "a", spread("zone"), "another")
    assert names.written == ["p", "q", "other"]


def test_what_has_ended_is_not_written() -> None:
    names = Names()
    for pod_name in "pqr":
        names.name(pod_name, "a", spread("zone"))
    names.end(key_of(pod("q")))
    assert names.written == ["p"]
    names.end(key_of(pod("p")))
    assert names.written == ["p", "r"]
    names.clear()
    names.name("s", "a", spread("zone"))
    assert names.written == ["p", "r", "s"]


def replicas(world: Cluster, *names: str) -> None:
    """Gated pods of one workload, spread over the racks."""
    for name in names:
        world.put(RESOURCE_CLAIMS, asking(f"c-{name}"))
        spec = spread("rack")
        spec["topologySpreadConstraints"][0]["maxSkew"] = 9
        made = pod(name, f"c-{name}", schedulingGates=[OURS], **spec)
        owner = {"kind": "ReplicaSet", "name": "r", "uid": "uid-r", "controller": True}
        made["metadata"] |= {"labels": {"app": "x"}, "ownerReferences": [owner]}
        world.put(PODS, made)


def test_the_next_replica_is_named_when_kube_scheduler_has_bound_the_one_before() -> None:
    world = Cluster({"a": 3}, {"a": "1"})
    replicas(world, *"pqr")
    world.run_until_idle()
    assert (world.named(*"pqr"), world.gated(*"pqr")) == (["a", "", ""], ["q", "r"])
    world.bind("p")
    world.run_until_idle()
    assert (world.named(*"pqr"), world.gated(*"pqr")) == (["a", "a", ""], ["r"])
    world.end("q")
    world.run_until_idle()
    assert (world.named("r"), world.gated("r")) == (["a"], [])


def test_a_replica_that_gets_nothing_after_all_is_decided_anew() -> None:
    world = Cluster({"a": 2, "b": 3}, {"a": "1", "b": "2"})
    replicas(world, *"pq")
    world.run_until_idle()
    assert world.named(*"pq") == ["a", ""]
    taken(world, "a", 0)
    taken(world, "a", 1)
    world.run_until_idle()
    assert world.named(*"pq") == ["a", "b"]
