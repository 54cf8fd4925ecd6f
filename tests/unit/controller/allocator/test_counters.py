"""Counter sets, with upstream's whole meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dra_driver.model.claim import Object
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

SPAN = {"default": "1", "validRange": {"min": "1", "max": "6"}}
SHARES: Object = {
    "allowMultipleAllocations": True,
    "capacity": {"slices": {"value": "6", "requestPolicy": SPAN}},
}
ONE = {"one": {"mode": "1"}}
SHARE = {"slices": "1"}


def part(name: str, memory: str, **more: Any) -> Object:
    return plain(name, counters={"card": {"memory": memory}}, **more)


def published(devices: list[Object], **sets: Mapping[str, str]) -> list[Object]:
    """A pool with its counter sets in a slice of their own, as since 1.35."""
    return [
        resource_slice("a", [], index=0, count=2, sharedCounters=counter_sets(**sets)),
        resource_slice("a", devices, index=1, count=2),
    ]


def two(cls: str = ANY) -> list[Object]:
    return [request("r", cls=cls), request("s", cls=cls)]


MEMORY = {"card": {"memory": "8"}}
MODE = {"one": {"mode": "1"}}
MODES = [plain("whole", counters=ONE), plain("shared", counters=ONE, **SHARES)]

CASES: dict[str, tuple[list[Object], list[Object], list[Object], list[str] | str]] = {
    "what is left suffices": (
        published([part("p", "5"), part("q", "3")], **MEMORY),
        [],
        two(),
        ["p", "q"],
    ),
    "what is left does not suffice": (
        published([part("p", "5"), part("q", "4")], **MEMORY),
        [allocated("x", "a", "p")],
        [request(cls=ANY)],
        "2 devices: 1 held, 1 without free counters; 1 requested",
    ),
    "another choice for the sake of the counters": (
        published([part("p", "5"), part("q", "4"), part("r", "3")], **MEMORY),
        [],
        two(),
        ["p", "r"],
    ),
    "devices without counters are free": (
        published([part("p", "8"), plain("q")], **MEMORY),
        [allocated("x", "a", "p")],
        [request(cls=ANY)],
        ["q"],
    ),
    "several counters of a set": (
        published(
            [
                plain("p", counters={"card": {"memory": "1", "cores": "3"}}),
                plain("q", counters={"card": {"memory": "1", "cores": "2"}}),
            ],
            card={"memory": "8", "cores": "4"},
        ),
        [],
        two(),
        (
            "claim c, request r: 2 devices: 2 free; 1 requested, "
            "but not all requests fit together; "
            "claim c, request s: 2 devices: 2 free; 1 requested, but not all requests fit together"
        ),
    ),
    "counter sets of one name and another": (
        published(
            [plain("p", counters={"s": {"n": "1"}}), plain("q", counters={"t": {"n": "1"}})],
            s={"n": "1"},
            t={"n": "1"},
        ),
        [],
        two(),
        ["p", "q"],
    ),
    "a shared device pays once, in one decision": (
        published(MODES, **MODE),
        [],
        [
            request("r", cls=ANY, capacity=SHARE, selector="device.allowMultipleAllocations"),
            request("s", cls=ANY, capacity=SHARE, selector="device.allowMultipleAllocations"),
        ],
        ["shared", "shared"],
    ),
    "a shared device pays once, over several": (
        published(MODES, **MODE),
        [allocated("x", "a", "shared", consumed=SHARE)],
        [request("r", cls=ANY, capacity=SHARE)],
        ["shared"],
    ),
    "a share excludes the whole card": (
        published(MODES, **MODE),
        [allocated("x", "a", "shared", consumed=SHARE)],
        [request("r", cls=ANY, selector="!device.allowMultipleAllocations")],
        "1 device: 1 without free counters; 1 requested",
    ),
    "administrative access needs counters too": (
        published([part("p", "8")], **MEMORY),
        [allocated("x", "a", "p")],
        [request(cls=ANY, adminAccess=True)],
        "1 device: 1 without free counters; 1 requested",
    ),
    "nothing more of a pool whose counters are exceeded": (
        published([part("p", "9"), plain("q", counters={"s": {"n": "1"}})], **MEMORY, s={"n": "1"}),
        [allocated("x", "a", "p")],
        [request(cls=ANY)],
        "2 devices: 1 held, 1 without free counters; 1 requested",
    ),
    "a set that does not exist": (
        published([plain("p", counters={"none": {"n": "1"}})], **MEMORY),
        [],
        [request(cls=ANY)],
        (
            "pool gcu.enflame.com/a is invalid: device p consumes counter none/n, "
            "which it does not have"
        ),
    ),
    "a counter that does not exist": (
        published([plain("p", counters={"card": {"n": "1"}})], **MEMORY),
        [],
        [request(cls=ANY)],
        (
            "pool gcu.enflame.com/a is invalid: device p consumes counter card/n, "
            "which it does not have"
        ),
    ),
    "a set twice": (
        [
            resource_slice("a", [], index=0, count=2, sharedCounters=counter_sets(**MEMORY)),
            resource_slice("a", [], index=1, count=2, sharedCounters=counter_sets(**MEMORY)),
        ],
        [],
        [request(cls=ANY)],
        "pool gcu.enflame.com/a is invalid: it has counter set card twice",
    ),
    "all devices that counters do not allow together": (
        published([part("p", "5"), part("q", "4")], **MEMORY),
        [],
        [request(cls=ANY, allocationMode="All")],
        "2 devices: 2 free; all requested, but not together",
    ),
}


@pytest.mark.parametrize(("slices", "held", "requests", "expected"), CASES.values(), ids=CASES)
def test_counters(
    slices: list[Object], held: list[Object], requests: list[Object], expected: list[str] | str
) -> None:
    outcome = decide(slices, held, claim("c", requests), nodes=["a"])
    assert outcome == (("a", expected) if isinstance(expected, list) else expected)


def test_counters_are_those_of_one_pool() -> None:
    devices = [part("p", "8")]
    slices = [
        resource_slice(node, devices, sharedCounters=counter_sets(**MEMORY)) for node in ("a", "b")
    ]
    held = [allocated("x", "a", "p")]
    assert decide(slices, held, claim("c", [request(cls=ANY)])) == ("b", ["p"])
