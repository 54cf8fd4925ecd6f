"""Replicas that are spread, while kube-scheduler allocates: one name on each node at a time."""

from __future__ import annotations

import pytest

from controller.cache.pods import key_of
from controller.nominate.replica_names import LONGEST, ReplicaNames
from controller.write.commands import LiftGate
from controller.write.node_hint import NodeHint
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocating.test_replicas_in_order import HOSTNAME, apart, spread
from tests.unit.controller.allocator.build import allocated
from tests.unit.controller.nominate.test_group_nominator import Cluster, asking, taken
from tests.unit.controller.test_pod_groups import OURS
from tests.unit.controller.world import pod


class Names(ReplicaNames):
    """Notes the names of pods whose nodes are written."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.now = 0.0
        super().__init__(lambda command: self.written.append(command.key.name), lambda: self.now)

    def name(
        self,
        pod_name: str,
        node: str,
        spec: Object,
        workload: str = "w",
        hint: NodeHint = NodeHint.NAME,
    ) -> None:
        found = pod(pod_name, **spec)
        self.add(LiftGate(key=key_of(found), pod=found, node=node, sequence=workload, hint=hint))


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


def test_an_affinity_counts_against_nobody() -> None:
    names = Names()
    for pod_name in "pq":
        names.name(pod_name, "a", spread("zone"), hint=NodeHint.AFFINITY)
    assert names.written == ["p", "q"]


def test_no_name_is_held_for_long() -> None:
    names = Names()
    for names.now, pod_name in ((0, "p"), (1, "q"), (2, "r")):
        names.name(pod_name, "a", spread("zone"))
    names.now = 1 + LONGEST
    names.go_on(key_of(pod("q")))
    assert names.written == ["p", "q"]
    names.now = 2 + LONGEST
    names.go_on(key_of(pod("r")))
    assert names.written == ["p", "q", "r"]


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


def replicas(world: Cluster, *names: str, skew: int = 9) -> None:
    """Gated pods of one workload, spread over the racks."""
    for name in names:
        world.put(RESOURCE_CLAIMS, asking(f"c-{name}"))
        spec = spread("rack")
        spec["topologySpreadConstraints"][0]["maxSkew"] = skew
        made = pod(name, f"c-{name}", schedulingGates=[OURS], **spec)
        owner = {"kind": "ReplicaSet", "name": "r", "uid": "uid-r", "controller": True}
        made["metadata"] |= {"labels": {"app": "x"}, "ownerReferences": [owner]}
        world.put(PODS, made)


def test_the_next_replica_is_named_when_the_one_before_is_bound_or_its_claim_allocated() -> None:
    world = Cluster({"a": 4}, {"a": "1"})
    replicas(world, *"pqrs")
    world.run_until_idle()
    assert (world.named(*"pqrs"), world.gated(*"pqrs")) == (["a", "", "", ""], ["q", "r", "s"])
    world.bind("p")
    world.run_until_idle()
    assert (world.named(*"qrs"), world.gated(*"qrs")) == (["a", "", ""], ["r", "s"])
    world.put(RESOURCE_CLAIMS, allocated("c-q", "a", "whole-0000-02-00-0"))
    world.run_until_idle()
    assert (world.named(*"rs"), world.gated(*"rs")) == (["a", ""], ["s"])
    world.end("r")
    world.run_until_idle()
    assert (world.named("s"), world.gated("s")) == (["a"], [])


def test_while_kube_scheduler_is_down_the_next_ones_are_named_after_some_seconds() -> None:
    world = Cluster({"a": 3}, {"a": "1"})
    replicas(world, *"pqr")
    world.run_until_idle()
    assert world.named(*"pqr") == ["a", "", ""]
    world.after(LONGEST - 1)
    assert world.named(*"pqr") == ["a", "", ""]
    world.after(1)
    assert (world.named(*"pqr"), world.gated(*"pqr")) == (["a", "a", "a"], [])


def test_they_are_named_in_time_whatever_else_comes() -> None:
    """Another claim gets the card that q would have had: what is held has a step."""
    world = Cluster({"a": 4}, {"a": "1"})
    replicas(world, *"pqr")
    world.run_until_idle()
    world.time += LONGEST / 2
    taken(world, "a", 1)
    world.run_until_idle()
    assert world.named(*"pqr") == ["a", "", ""]
    world.after(LONGEST / 2)
    assert world.named(*"pqr") == ["a", "a", "a"]


def held_on_a() -> Cluster:
    """Pod `p` is named for node `a`, and the name of `q` is held."""
    world = Cluster({"a": 2, "b": 3}, {"a": "1", "b": "2"})
    replicas(world, *"pq")
    world.run_until_idle()
    assert world.named(*"pq") == ["a", ""]
    return world


def test_a_replica_whose_cards_are_taken_is_decided_anew() -> None:
    world = held_on_a()
    taken(world, "a", 0)
    taken(world, "a", 1)
    world.run_until_idle()
    assert world.named(*"pq") == ["a", "b"]


def test_replicas_keep_their_order_while_those_of_several_nodes_get_other_devices() -> None:
    """For a moment nothing is expected of any of them, and one rack seems to have too many."""
    world = Cluster({"a": 8, "b": 8}, {"a": "1", "b": "2"})
    replicas(world, *"pqrstuvw", skew=1)
    world.run_until_idle()
    taken(world, "a", 0)
    taken(world, "b", 0)
    world.run_until_idle()
    for name, node, next_but_one in zip("pqrstu", "ababab", "rstuvw", strict=True):
        assert world.named(name, next_but_one) == [node, ""]
        world.bind(name)
        world.run_until_idle()
        assert world.named(next_but_one) == [node]


def test_a_replica_whose_claim_is_made_anew_is_decided_anew() -> None:
    world = held_on_a()
    world.remove(RESOURCE_CLAIMS, "c-q")
    world.run_until_idle()
    assert (world.named("q"), world.gated("q")) == ([""], ["q"])
    world.put(RESOURCE_CLAIMS, asking("c-q"))
    world.bind("p")
    world.run_until_idle()
    assert (world.named("q"), world.gated("q")) == (["a"], [])
