"""Views over a ResourceClaim as the API server sends it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from dra_driver.model.claims.claim import (
    ClaimRef,
    Result,
    all_results,
    allocated_at,
    allocation,
    reserved_for,
    results,
)

ENTRY = {
    "request": "gcu",
    "driver": "gcu.enflame.com",
    "pool": "gcu.enflame.com/node-1",
    "device": "whole-0000-0d-00-0",
}
SHARE = ENTRY | {
    "request": "gcu/small",
    "device": "shared-0000-0d-00-0",
    "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
    "consumedCapacity": {"gcu.enflame.com/slices": "2"},
    "adminAccess": True,
}
OTHER = ENTRY | {"request": "nic", "driver": "nic.example.com"}
CONSUMER = {"resource": "pods", "name": "one", "uid": "pod-uid"}


def claim(*entries: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": "one", "uid": "claim-uid"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": list(entries)}}, **status},
    }


def test_a_reference_is_of_one_claim() -> None:
    ref = ClaimRef.of(claim())
    assert ref == ClaimRef("default", "one", "claim-uid")
    assert str(ref) == "default/one"
    assert ref != ClaimRef("default", "one", "another-uid")


def test_results_are_those_of_this_driver_in_their_order() -> None:
    found = results(claim(SHARE, OTHER, ENTRY))
    assert [result.request for result in found] == ["gcu/small", "gcu"]
    assert [result.request for result in all_results(claim(SHARE, OTHER, ENTRY))] == [
        "gcu/small",
        "nic",
        "gcu",
    ]


def test_a_plain_result() -> None:
    (found,) = results(claim(ENTRY))
    assert found == Result(
        request="gcu",
        driver="gcu.enflame.com",
        pool="gcu.enflame.com/node-1",
        device="whole-0000-0d-00-0",
        share_id=None,
        consumed={},
        admin_access=False,
    )
    assert found.main_request == "gcu"


def test_a_share_of_a_request_with_alternatives() -> None:
    (found,) = results(claim(SHARE))
    assert (found.share_id, found.consumed) == (SHARE["shareID"], {"slices": "2"})
    assert (found.main_request, found.admin_access) == ("gcu", True)


@pytest.mark.parametrize(
    "unallocated",
    [{}, {"status": {}}, {"status": None}, {"status": {"allocation": None, "reservedFor": None}}],
    ids=["no status", "empty status", "null status", "null fields"],
)
def test_an_unallocated_claim(unallocated: dict[str, Any]) -> None:
    assert allocation(unallocated) is None
    assert (results(unallocated), reserved_for(unallocated)) == ((), ())


@pytest.mark.parametrize(
    "allocated", [{}, {"devices": {}}, {"devices": None}, {"devices": {"results": None}}]
)
def test_an_allocation_without_devices(allocated: dict[str, Any]) -> None:
    assert results({"status": {"allocation": allocated}}) == ()


def test_views_alter_nothing() -> None:
    seen = claim(SHARE, OTHER, reservedFor=[CONSUMER])
    before = copy.deepcopy(seen)
    results(seen)
    assert reserved_for(seen) == (CONSUMER,)
    assert allocation(seen) is seen["status"]["allocation"]
    assert seen == before


def test_when_it_was_allocated() -> None:
    found = claim(ENTRY)
    assert allocated_at(found) is None
    fields: dict[str, Any] = {"f:status": {"f:allocation": {}}}
    found["metadata"]["managedFields"] = [
        {"manager": "kubectl", "time": "2026-01-01T00:00:01Z", "fieldsV1": fields},
        {"subresource": "status", "time": "2026-01-01T00:00:02Z", "fieldsV1": {"f:status": {}}},
        {"subresource": "status", "time": "2026-01-01T00:00:03Z", "fieldsV1": fields},
    ]
    assert allocated_at(found) == datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC)
    found["status"]["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:04Z"
    assert allocated_at(found) == datetime(2026, 1, 1, 0, 0, 4, tzinfo=UTC)
    del found["status"]["allocation"]  # the entry may outlive the allocation
    assert allocated_at(found) is None
