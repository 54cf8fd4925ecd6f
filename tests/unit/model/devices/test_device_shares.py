"""The devices with shares, and that the API server's validation would take them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dra_driver.model.card import Problem
from dra_driver.model.devices.device import whole_device
from dra_driver.model.devices.device_shares import (
    drs_device,
    is_stripped,
    shared_device,
    with_shares,
)
from dra_driver.model.errors import InvalidValue
from dra_driver.model.profile import Profile, ProfileTable
from tests.unit.model import cards

CARD = replace(
    cards.CARD,
    pcie_bridges=(),
    problems=(Problem("gcu.enflame.com/unhealthy", "health", "efsmi says so"),),
)
TABLE = ProfileTable.of(
    [
        Profile("1g.6gb", 0, 6, 6860, 4),
        Profile("3g.20gb", 1, 2, 20580, 12),
        Profile("6g.40gb", 2, 1, 41160, 24),
    ]
)


def objections(capacity: dict[str, Any]) -> list[str]:
    """What the validation of 1.36.3 says about a capacity (``validateRequestPolicy``)."""
    value, policy = int(capacity["value"]), capacity["requestPolicy"]
    default = int(policy["default"])
    found = []
    if (span := policy.get("validRange")) is not None:
        low, high = int(span["min"]), int(span["max"])
        found += [] if low <= default <= high <= value else ["default, range or value"]
        if "step" in span:
            step = int(span["step"])
            found += ["one step is larger than the capacity"] if low + step > value else []
            found += ["not a multiple"] if (default - low) % step or (high - low) % step else []
    values = [int(each) for each in policy.get("validValues", ())]
    if values:
        found += [] if default in values else ["default is not valid"]
        found += [] if values == sorted(set(values)) and len(values) <= 10 else ["values"]
        found += [] if values[-1] <= value else ["larger than the capacity"]
    return found + ([] if bool(values) != bool(span) else ["exactly one policy"])


WHOLE = whole_device(CARD, allocator="controller", sips=24)


def like_the_whole(kind: str, capacity: dict[str, Any], **attributes: object) -> dict[str, Any]:
    """What the card's device for many claims is, where it differs from the one for the card."""
    return WHOLE | {
        "name": f"{kind}-0000-0d-00-0",
        "attributes": WHOLE["attributes"] | {"type": {"string": kind}} | attributes,
        "allowMultipleAllocations": True,
        "capacity": capacity,
    }


def test_the_slices_of_a_card() -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "6", "step": "1"}}
    assert shared_device(CARD, 6, allocator="controller", sips=24) == like_the_whole(
        "shared",
        {"slices": {"value": "6", "requestPolicy": policy}},
        memoryPerSliceMiB={"int": 7162},
    )


def test_the_drs_device_of_a_card() -> None:
    policy = {"default": "1", "validValues": ["1", "3", "6"]}
    assert drs_device(CARD, TABLE, allocator="controller") == like_the_whole(
        "drs",
        {"size": {"value": "6", "requestPolicy": policy}},
        profiles={"string": "1g.6gb,3g.20gb,6g.40gb"},
    )


def test_one_slice_needs_no_step() -> None:
    capacity = shared_device(CARD, 1, allocator="controller")["capacity"]["slices"]
    assert capacity["requestPolicy"]["validRange"] == {"min": "1", "max": "1"}


@pytest.mark.parametrize("count", range(1, 17))
def test_the_server_takes_every_slice_count(count: int) -> None:
    device = shared_device(CARD, count, allocator="controller")
    assert objections(device["capacity"]["slices"]) == []


@pytest.mark.parametrize("count", [0, 17, -1])
def test_other_slice_counts_are_refused(count: int) -> None:
    with pytest.raises(InvalidValue, match="from 1 to 16"):
        shared_device(CARD, count, allocator="controller")


@pytest.mark.parametrize("sizes", [(1, 3, 6), (2,), tuple(range(1, 13))], ids=str)
def test_the_server_takes_every_profile_table(sizes: tuple[int, ...]) -> None:
    table = ProfileTable.of(Profile(f"{n}g.{n}gb", n, 12 // n, n, n) for n in sizes)
    device = drs_device(CARD, table, allocator="controller")
    assert objections(device["capacity"]["size"]) == []


def stored_before_1_36(device: dict[str, Any]) -> dict[str, Any]:
    capacity = {name: {"value": each["value"]} for name, each in device["capacity"].items()}
    return {key: value for key, value in device.items() if key != "allowMultipleAllocations"} | {
        "capacity": capacity
    }


PUBLISHED = {
    "slices": shared_device(CARD, 6, allocator="controller"),
    "one slice": shared_device(CARD, 1, allocator="controller"),
    "sizes": drs_device(CARD, TABLE, allocator="controller"),
    "a whole card": whole_device(CARD, allocator="controller"),
}


@pytest.mark.parametrize("device", PUBLISHED.values(), ids=PUBLISHED)
def test_what_a_server_drops_is_known_from_what_it_keeps(device: dict[str, Any]) -> None:
    stored = stored_before_1_36(device)
    assert is_stripped(stored) == device.get("allowMultipleAllocations", False)
    assert with_shares(stored) == device
    assert with_shares(device) is device
