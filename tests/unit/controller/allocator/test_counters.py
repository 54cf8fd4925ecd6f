"""Devices that consume counters are kube-scheduler's to allocate; what is held of them counts."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    ANY,
    allocated,
    claim,
    counter_sets,
    plain,
    request,
    resource_slice,
)
from tests.unit.controller.allocator.decide import decide

COUNTED = plain("p", counters={"card": {"memory": "5"}})
SETS = counter_sets(card={"memory": "8"})

CASES: dict[str, tuple[list[Object], Object, list[str] | str]] = {
    "refused by name": (
        [COUNTED],
        {},
        "1 device: 1 with counters, which only kube-scheduler allocates; 1 requested",
    ),
    "also with administrative access": (
        [COUNTED],
        {"adminAccess": True},
        "1 device: 1 with counters, which only kube-scheduler allocates; 1 requested",
    ),
    "devices without counters are given out": ([COUNTED, plain("q")], {}, ["q"]),
    "all devices": (
        [COUNTED, plain("q")],
        {"allocationMode": "All"},
        "2 devices: 1 free, 1 with counters, which only kube-scheduler allocates; all requested",
    ),
}


@pytest.mark.parametrize(("devices", "asked", "expected"), CASES.values(), ids=CASES)
def test_counters(devices: list[Object], asked: Object, expected: list[str] | str) -> None:
    slices = [
        resource_slice("a", [], index=0, count=2, sharedCounters=SETS),
        resource_slice("a", devices, index=1, count=2),
    ]
    outcome = decide(slices, [], claim("c", [request(cls=ANY, **asked)]), nodes=["a"])
    assert outcome == (("a", expected) if isinstance(expected, list) else expected)


def test_what_is_held_of_such_a_pool_counts() -> None:
    slices = [resource_slice("a", [COUNTED, plain("q")])]
    held = [allocated("x", "a", "q")]
    assert decide(slices, held, claim("c", [request(cls=ANY)]), nodes=["a"]) == (
        "2 devices: 1 held, 1 with counters, which only kube-scheduler allocates; 1 requested"
    )


@pytest.mark.parametrize(
    ("devices", "held", "asked", "expected"),
    [
        pytest.param([COUNTED], [], {}, ("a", ["p"]), id="with counters"),
        pytest.param(
            [plain("q")],
            [],
            {},
            "1 device: 1 without counters, which kube-scheduler does not allocate yet; 1 requested",
            id="without",
        ),
        pytest.param([COUNTED], [], {"adminAccess": True}, ("a", ["p"]), id="an administrator's"),
        pytest.param(
            [COUNTED],
            [allocated("x", "a", "p")],
            {"adminAccess": True},
            "1 device: 1 held; 1 requested",
            id="an administrator's, whose card is held",
        ),
    ],
)
def test_where_kube_scheduler_allocates(
    devices: list[Object], held: list[Object], asked: Object, expected: tuple[str, list[str]] | str
) -> None:
    wanted = claim("c", [request(cls=ANY, **asked)])
    slices = [resource_slice("a", devices)]
    assert decide(slices, held, wanted, nodes=["a"], for_scheduler=True) == expected
