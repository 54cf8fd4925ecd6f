"""What `make bench-constraints` makes, and how it judges the first nodes."""

from __future__ import annotations

import pytest

from bench.constrained import CONSTRAINTS, FirstNodes, replica_set
from bench.scenarios import SCENARIOS
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object

CHANGED = {
    "apart": {"affinity"},
    "zones": {"topologySpreadConstraints"},
    "rdma": {"containers"},
    "ports": {"containers"},
}


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_constraint_is_all_that_differs(constraint: str) -> None:
    with_it, without = (
        replica_set(SCENARIOS["ours"], "w", 3, each)["spec"]["template"]["spec"]
        for each in (constraint, None)
    )
    differing = {key for key in with_it if with_it[key] != without.get(key)}
    assert differing == CHANGED[constraint]


def claim(uid: str, node: str) -> Object:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    owner = {"controller": True, "kind": "Pod", "uid": uid}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": uid, "ownerReferences": [owner]},
        "status": {"allocation": {"nodeSelector": {"nodeSelectorTerms": [term]}}},
    }


def bound(uid: str, node: str) -> Object:
    return {"kind": "Pod", "metadata": {"uid": uid}, "spec": {"nodeName": node}}


def test_the_first_node_counts() -> None:
    first = FirstNodes()
    for uid, node in (("p", "a"), ("q", "a"), ("q", "b")):
        first.on_event(Change.MODIFIED, claim(uid, node))
    pods = [bound("p", "a"), bound("q", "b"), bound("r", "c"), bound("s", "a")]
    assert first.share_right(pods) == 0.25
