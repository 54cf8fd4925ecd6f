"""What is learnt from a refused node about others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from controller.allocating.refusals import Learnt, Refusals
from controller.cache.nodes import HOSTNAME
from dra_driver.model.claims.claim import Object
from tests.unit.controller.world import node, pod

ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"
TYPE = "node.kubernetes.io/instance-type"
LABELS = {HOSTNAME: "a", ZONE: "z1", RACK: "r1"}
NOWHERE = "resourceclaim not available on the node"


def refused(name: str = "a", **allocatable: str) -> Object:
    found = node(name)
    found["metadata"]["labels"] = LABELS
    found["status"]["allocatable"] = allocatable
    return found


def verdict(*reasons: str) -> str:
    listed = ", ".join(f"1 {reason}" for reason in reasons)
    return (
        f"0/9 nodes are available: {listed}, 8 {NOWHERE}. deallocation of ResourceClaim completed,"
        " preemption: 0/9 nodes are available: 1 Insufficient example.com/other."
    )


def spread(key: str, when: str = "DoNotSchedule") -> Mapping[str, Any]:
    return {"topologySpreadConstraints": [{"topologyKey": key, "whenUnsatisfiable": when}]}


def affinity(kind: str, *keys: str) -> Mapping[str, Any]:
    terms = [{"topologyKey": key} for key in keys]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("reason", "spec", "learnt"),
    [
        pytest.param(
            "Insufficient example.com/rdma",
            {},
            Learnt(lacking=frozenset({"example.com/rdma"})),
            id="it has no such resource",
        ),
        pytest.param("Insufficient cpu", {}, Learnt(), id="the resource is used"),
        pytest.param(
            "node(s) didn't match pod topology spread constraints (missing required label)",
            spread(ZONE),
            Learnt(apart=frozenset({ZONE})),
            id="spread",
        ),
        pytest.param(
            "node(s) didn't match pod topology spread constraints",
            spread(ZONE, "ScheduleAnyway"),
            Learnt(),
            id="a spread that may be left",
        ),
        pytest.param(
            "node(s) didn't match pod anti-affinity rules",
            affinity("podAntiAffinity", RACK, HOSTNAME),
            Learnt(apart=frozenset({RACK, HOSTNAME})),
            id="apart",
        ),
        pytest.param(
            "node(s) didn't match pod affinity rules",
            affinity("podAffinity", ZONE),
            Learnt(together=frozenset({(ZONE, "z1")})),
            id="together",
        ),
        pytest.param(
            "node(s) didn't have free ports for the requested pod ports",
            {},
            Learnt(apart=frozenset({HOSTNAME})),
            id="port",
        ),
        pytest.param(
            "node(s) were out of luck",
            {},
            Learnt(guessed=frozenset({(ZONE, "z1"), (TYPE, None)})),
            id="not known",
        ),
    ],
)
def test_what_a_reason_teaches(reason: str, spec: Mapping[str, Any], learnt: Learnt) -> None:
    known, user = Refusals(300.0), pod("p", "c", **spec)
    known.learn(user, refused(cpu="64"), verdict(reason), 10.0)
    assert known.learnt(user, 20.0) == learnt._replace(nodes=frozenset("a"))


def test_replicas_share_it_and_others_do_not() -> None:
    known = Refusals(300.0)
    first, second, other = pod("p", "c"), pod("q", "c"), pod("o", "c")
    for replica in (first, second):
        replica["metadata"]["ownerReferences"] = [
            {"controller": True, "kind": "ReplicaSet", "uid": "set"}
        ]
    known.learn(first, refused(), verdict("Insufficient cpu"), 10.0)
    assert known.learnt(second, 20.0).nodes == {"a"}
    assert not known.learnt(other, 20.0).nodes


def test_it_is_forgotten() -> None:
    known, user = Refusals(300.0), pod("p", "c")
    known.learn(user, refused("a"), verdict("Insufficient cpu"), 10.0)
    known.learn(user, refused("b"), verdict("Insufficient cpu"), 200.0)
    assert known.learnt(user, 310.0).nodes == {"a", "b"}
    assert known.learnt(user, 311.0).nodes == {"b"}
    assert not known.learnt(user, 501.0).nodes
