"""Which pods wait for GCUs, and in which groups."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_WHOLE
from kubectl_gcu.scheduling.waiting import WaitingObjects, WaitingPod, waiting
from tests.unit.controller.allocator.build import CLASSES

OURS = {"name": "gcu", "exactly": {"deviceClassName": CLASS_WHOLE, "count": 1}}
OTHERS = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}


def claim(name: str, request: Object) -> Object:
    metadata = {"namespace": "team", "name": name, "uid": name}
    return {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}


def pod(name: str, used: str = "", **more: Any) -> Object:
    spec: Object = {"containers": [{"name": "main"}], **more.pop("spec", {})}
    if used:
        spec["resourceClaims"] = [{"name": "gcu", "resourceClaimName": used}]
    metadata = {"namespace": "team", "name": name, "uid": f"uid-{name}", **more}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def objects(*pods: Object, groups: dict[str, Object] | None = None) -> WaitingObjects:
    claims = {f"team/{each}": claim(each, OURS) for each in ("one", "two")}
    claims["team/gpu"] = claim("gpu", OTHERS)
    return WaitingObjects(pods, claims, CLASSES, groups)


def names(found: WaitingObjects) -> list[str]:
    return [each.name for each in waiting(found)[0]]


LIMITED = {"containers": [{"name": "main", "resources": {"limits": {"enflame.com/gcu": "1"}}}]}


@pytest.mark.parametrize(
    ("pod_", "waits"),
    [
        pytest.param(pod("p", "one"), True, id="of this driver"),
        pytest.param(pod("p", "gpu"), False, id="of another driver"),
        pytest.param(pod("p", "absent"), True, id="a claim that does not exist"),
        pytest.param(pod("p"), False, id="no claim"),
        pytest.param(pod("p", spec=LIMITED), True, id="limits"),
        pytest.param(pod("p", "one") | {"status": {"phase": "Running"}}, False, id="runs"),
        pytest.param(pod("p", "one") | {"status": {"phase": "Failed"}}, False, id="has ended"),
        pytest.param(pod("p", "one", deletionTimestamp="x"), False, id="ends"),
    ],
)
def test_who_waits(pod_: Object, *, waits: bool) -> None:
    assert bool(names(objects(pod_))) is waits


def test_the_more_urgent_pod_comes_first() -> None:
    late = pod("late", "one", creationTimestamp="2026-01-02T00:00:00Z")
    early = pod("early", "two", creationTimestamp="2026-01-01T00:00:00Z")
    urgent = pod("urgent", "two", creationTimestamp="2026-01-03T00:00:00Z", spec={"priority": 9})
    assert names(objects(late, early, urgent)) == ["urgent", "early", "late"]


def test_what_is_said_of_a_pod() -> None:
    [[found], groups] = waiting(objects(pod("p", "one", creationTimestamp="now")))
    assert found == WaitingPod(
        "team", "p", "uid-p", "now", f"1 of {CLASS_WHOLE}", "the allocator", "", ""
    )
    assert groups == []
    [[limited], _] = waiting(objects(pod("p", spec=LIMITED)))
    assert limited.asks == "limits enflame.com/gcu"
    [[bound], _] = waiting(objects(pod("p", "one", spec={"nodeName": "a"})))
    assert bound.node == "a"


def test_a_group_says_how_far_it_is() -> None:
    grouped = {"schedulingGroup": {"podGroupName": "gang"}}
    members = [pod(name, name, spec=grouped) for name in ("one", "two")]
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    gang = {"metadata": {"namespace": "team", "name": "gang", "uid": "g"}, "spec": policy}
    found, [group] = waiting(objects(*members, groups={"team/gang": gang}))
    assert [each.group for each in found] == ["team/gang"] * 2
    assert group.name == "team/gang"
    assert group.progress == (
        "PodGroup team/gang needs 3 pods (existing: 2, with devices: 0, bound: 0)"
    )
    _, [unread] = waiting(objects(*members))
    assert unread.progress == "PodGroup team/gang (existing: 2, with devices: 0, bound: 0)"
