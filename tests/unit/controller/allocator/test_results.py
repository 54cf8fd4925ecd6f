"""The allocation is written as upstream's own allocator writes it."""

from __future__ import annotations

from collections.abc import Mapping

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.request import parse_claim
from controller.allocator.results import allocation_status
from dra_driver.model.claim import Object
from tests.unit.controller.allocator.build import (
    CLASSES,
    claim,
    device,
    device_class,
    pool,
    request,
    state,
)

OPAQUE = {"opaque": {"driver": "gcu.enflame.com", "parameters": {"kind": "X"}}}


def written(each: Object, classes: Mapping[str, Object] = CLASSES) -> Object:
    devices = [device(mode, bus) for bus in (0, 1) for mode in ("whole", "shared")]
    found = state(pool("node-a", devices), classes=classes)
    wanted = parse_claim(each, classes)
    outcome = allocate(found, [wanted], ["node-a"])
    assert isinstance(outcome, Allocation)
    return allocation_status(
        wanted,
        outcome.grants[0],
        outcome.node,
        classes,
        timestamp="2026-01-02T03:04:05Z",
        new_share_id=lambda: "share-1",
    )


def test_a_whole_card() -> None:
    assert written(claim("c")) == {
        "devices": {
            "results": [
                {
                    "request": "gcu",
                    "driver": "gcu.enflame.com",
                    "pool": "gcu.enflame.com/node-a",
                    "device": "whole-0000-00-00-0",
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
            ]
        },
        "allocationTimestamp": "2026-01-02T03:04:05Z",
    }


def test_a_share_tells_what_it_consumes() -> None:
    share = request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})
    [result] = written(claim("c", [share]))["devices"]["results"]
    assert result["shareID"] == "share-1"
    assert result["consumedCapacity"] == {"slices": "2"}


def test_tolerations_are_copied() -> None:
    toleration = {"key": "example.com/x", "operator": "Exists", "effect": "NoSchedule"}
    [result] = written(claim("c", [request(tolerations=[toleration])]))["devices"]["results"]
    assert result["tolerations"] == [toleration]


def test_config_comes_from_class_and_claim() -> None:
    classes = {"gcu.enflame.com": device_class("gcu.enflame.com", "whole", config=[OPAQUE])}
    both = claim(
        "c",
        [request("x"), request("y")],
        config=[OPAQUE, OPAQUE | {"requests": ["y"]}, OPAQUE | {"requests": ["other"]}],
    )
    assert written(both, classes)["devices"]["config"] == [
        {"source": "FromClass", "requests": ["x", "y"], **OPAQUE},
        {"source": "FromClaim", **OPAQUE},
        {"source": "FromClaim", "requests": ["y"], **OPAQUE},
    ]


def test_config_of_several_requests_stands_once_for_each() -> None:
    several = claim("c", [request("x"), request("y")], config=[OPAQUE | {"requests": ["x", "y"]}])
    entry = {"source": "FromClaim", "requests": ["x", "y"], **OPAQUE}
    assert written(several)["devices"]["config"] == [entry, entry]
