"""Devices of hidden slices: nothing of them is dropped by any server, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.card import Problem
from dra_driver.model.devices.device import taint
from dra_driver.model.devices.hidden_device import hide, reveal
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    TAINT_ALLOCATED_BY,
    TAINT_CHANGING,
    TAINT_UNHEALTHY,
)
from tests.unit.model.devices.test_device_shares import PUBLISHED

PROBLEMS = (
    Problem(TAINT_CHANGING, "", "its form is to change"),
    Problem(TAINT_UNHEALTHY, "health", "efsmi says so"),
    Problem(TAINT_UNHEALTHY, "lost", "it is gone"),
)
DROPPED = ("taints", "allowMultipleAllocations", "requestPolicy")  # by 1.34.4 and 1.35.4


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {*value, *(key for each in value.values() for key in keys(each))}
    return set()


def by_key(device: dict[str, Any]) -> dict[str, Any]:
    """The device with its taints in an order."""
    taints = sorted(device["taints"], key=lambda each: (each["key"], each.get("value", "")))
    return {**device, "taints": taints}


@pytest.mark.parametrize("device", PUBLISHED.values(), ids=PUBLISHED)
def test_a_hidden_device_has_all_that_is_known_of_it(device: dict[str, Any]) -> None:
    problems = [taint(each.taint, each.value) for each in PROBLEMS]
    device = device | {"taints": [taint(TAINT_ALLOCATED_BY, ALLOCATOR_CONTROLLER), *problems]}
    hidden = hide(device)
    assert not keys(hidden) & {*DROPPED}
    assert hidden["attributes"]["unhealthy"] == {"string": "health,lost"}
    assert hidden["attributes"]["changing"] == {"bool": True}
    assert by_key(reveal(hidden)) == by_key(device)


@pytest.mark.parametrize("device", PUBLISHED.values(), ids=PUBLISHED)
def test_a_device_without_a_problem(device: dict[str, Any]) -> None:
    clean = device | {"taints": [taint(TAINT_ALLOCATED_BY, ALLOCATOR_CONTROLLER)]}
    assert reveal(hide(clean)) == clean


def test_a_newer_server_is_given_no_more_than_an_older_one() -> None:
    """So that its answer is the same, and nothing is written again after its upgrade."""
    device = PUBLISHED["slices"]
    assert hide(reveal(hide(device))) == hide(device)


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "a"},
        {"name": "a", "attributes": {"type": {"string": "other"}}},
        {
            "name": "a",
            "attributes": {"type": {"string": "shared"}},
            "capacity": {"slices": {"value": "many"}},
        },
        {
            "name": "a",
            "attributes": {"type": {"string": "drs"}, "profiles": {"string": "large"}},
            "capacity": {"size": {"value": "6"}},
        },
        {"name": "a", "attributes": {"type": {"string": "shared"}}},
    ],
    ids=["nothing", "another type", "no number", "no profiles", "no capacity"],
)
def test_what_others_wrote_is_left_as_it_is(entry: dict[str, Any]) -> None:
    assert reveal(entry) == entry | {"taints": [taint(TAINT_ALLOCATED_BY, ALLOCATOR_CONTROLLER)]}
