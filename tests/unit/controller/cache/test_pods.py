"""Small views on pods."""

from __future__ import annotations

import pytest

from controller.cache import pods
from controller.cache.keys import uid_of
from dra_driver.model.claims.claim import Object, claim_names

NAMED = {"name": "a", "resourceClaimName": "claim-a"}
FROM_TEMPLATE = {"name": "b", "resourceClaimTemplateName": "t"}


@pytest.mark.parametrize(
    ("references", "statuses", "names"),
    [
        pytest.param([NAMED], [], {"a": "claim-a"}, id="by name"),
        pytest.param([FROM_TEMPLATE], [], {"b": None}, id="not made yet"),
        pytest.param(
            [NAMED, FROM_TEMPLATE],
            [{"name": "b", "resourceClaimName": "pod-b-x"}],
            {"a": "claim-a", "b": "pod-b-x"},
            id="made from the template",
        ),
        pytest.param([FROM_TEMPLATE], [{"name": "b"}], {}, id="none needed"),
    ],
)
def test_claim_names(
    references: list[Object], statuses: list[Object], names: dict[str, str | None]
) -> None:
    pod = {"spec": {"resourceClaims": references}, "status": {"resourceClaimStatuses": statuses}}
    assert claim_names(pod) == names


def test_urgency_is_priority_then_age() -> None:
    def pod(uid: str, priority: int, created: str) -> Object:
        return {
            "metadata": {"uid": uid, "creationTimestamp": created},
            "spec": {"priority": priority},
        }

    waiting = [pod("new", 0, "2026-02"), pod("old", 0, "2026-01"), pod("high", 9, "2026-03")]
    assert [uid_of(each) for each in sorted(waiting, key=pods.urgency)] == [
        "high",
        "old",
        "new",
    ]


@pytest.mark.parametrize(
    ("condition", "unschedulable"),
    [
        ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, True),
        ({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}, False),
        ({"type": "PodScheduled", "status": "True"}, False),
    ],
)
def test_is_unschedulable(condition: Object, unschedulable: bool) -> None:
    assert pods.is_unschedulable({"status": {"conditions": [condition]}}) is unschedulable


CPU, CLAIMS = "1 Insufficient cpu.", "1 cannot allocate all claims."
NODES = "0/1 nodes are available: "
VERDICTS = {
    "cpu, and then the claims": (f"{NODES}{CPU} preemption: {NODES}{CLAIMS}", True),
    "cpu, and nobody to end for it": (
        f"{NODES}{CPU} preemption: {NODES}1 No victims found.",
        False,
    ),
    "the claims at once": (f"{NODES}{CLAIMS} preemption: {NODES}{CLAIMS}", False),
    "cpu alone": (f"{NODES}{CPU}", False),
}


@pytest.mark.parametrize(("verdict", "missed"), VERDICTS.values(), ids=VERDICTS)
def test_missed_preemption(verdict: str, missed: bool) -> None:
    assert pods.missed_preemption(verdict) is missed


def test_a_claim_made_for_another_pod_is_not_owned() -> None:
    owner = {"kind": "Pod", "controller": True, "uid": "u1"}
    claim = {"metadata": {"ownerReferences": [owner]}}
    assert pods.owns({"metadata": {"uid": "u1"}}, claim)
    assert not pods.owns({"metadata": {"uid": "u2"}}, claim)
    assert pods.owns({"metadata": {"uid": "u2"}}, {"metadata": {}})
