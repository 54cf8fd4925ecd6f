"""Devices of a card, and what becomes of them while claims hold it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dra_driver.agent.slices.device_layout import card_devices, slice_count, with_layouts_in_use
from dra_driver.config.card_rules import CardConfig
from dra_driver.model.card import Card, Problem
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    TAINT_ADMINISTRATORS,
    TAINT_ALLOCATED_BY,
    TAINT_CHANGING,
    TAINT_UNHEALTHY,
)
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile, ProfileTable
from tests.unit.node import world

ADDRESS = world.CARDS[0]
CARD = world.card(ADDRESS, 0)
TABLE = ProfileTable.of(
    [Profile("1g.6gb", 0, 6, 6 << 10, 1), Profile("3g.20gb", 1, 2, 20 << 10, 3)]
)
SMALL_TABLE = ProfileTable.of([Profile("1g.4gb", 0, 4, 4 << 10, 1)])
HELD = frozenset({ADDRESS})

Devices = list[dict[str, Any]]


def card(*problems: Problem, **more: Any) -> Card:
    return replace(CARD, problems=problems, **more)


def devices(
    found: Card | None = None,
    offer: CardConfig | None = None,
    table: ProfileTable | None = TABLE,
    allocator: str = "controller",
) -> Devices:
    return list(card_devices(found or card(), offer or CardConfig(), table, allocator))


def names(found: Devices) -> list[str]:
    return [each["name"].partition("-")[0] for each in found]


def in_order(found: Devices) -> Devices:
    return sorted(found, key=lambda each: str(each["name"]))


def taints(found: Devices) -> set[tuple[str, str]]:
    """Keys and values; every device must have the same."""
    [same] = {frozenset((t["key"], t.get("value", "")) for t in each["taints"]) for each in found}
    return set(same)


@pytest.mark.parametrize(
    ("modes", "table", "expected"),
    [
        pytest.param(frozenset(Mode), TABLE, ["whole", "shared", "drs"], id="all"),
        pytest.param(frozenset(Mode), None, ["whole", "shared"], id="profiles unknown"),
        pytest.param(frozenset({Mode.DRS}), TABLE, ["drs"], id="one mode"),
        pytest.param(frozenset({Mode.DRS}), None, [], id="nothing yet"),
    ],
)
def test_devices_of_a_card(
    modes: frozenset[Mode], table: ProfileTable | None, expected: list[str]
) -> None:
    assert names(devices(offer=CardConfig(4, modes), table=table)) == expected


def test_slices_are_counted_as_published() -> None:
    newer = {"name": "newer-0000-0d-00-0", "capacity": {"slices": {"value": "8"}}}
    assert slice_count([newer, *devices(offer=CardConfig(4))], ADDRESS) == 4
    assert slice_count([newer], ADDRESS) is None


def test_a_free_card_changes_at_once() -> None:
    new = devices(offer=CardConfig(4))
    assert with_layouts_in_use({ADDRESS: new}, devices(), frozenset()) == in_order(new)


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(devices(offer=CardConfig(4)), id="slice count"),
        pytest.param(devices(offer=CardConfig(6, frozenset({Mode.WHOLE}))), id="a mode goes"),
        pytest.param(devices(table=SMALL_TABLE), id="profile table"),
        pytest.param(devices(card(memory_mib=46000)), id="memory"),
    ],
)
def test_a_held_card_keeps_its_form_and_lets_nothing_in(new: Devices) -> None:
    old = devices()
    found = with_layouts_in_use({ADDRESS: new}, old, HELD)
    assert [{**each, "taints": None} for each in found] == [
        {**each, "taints": None} for each in in_order(old)
    ]
    assert taints(found) == {(TAINT_ALLOCATED_BY, "controller"), (TAINT_CHANGING, "")}
    # and again, as the next look compares with what it published itself
    assert with_layouts_in_use({ADDRESS: new}, found, HELD) == found
    assert with_layouts_in_use({ADDRESS: new}, found, frozenset()) == in_order(new)


def test_a_held_card_tells_its_health_while_its_form_waits() -> None:
    sick = card(Problem(TAINT_UNHEALTHY, "health", "health is false"))
    found = with_layouts_in_use({ADDRESS: devices(sick, CardConfig(4))}, devices(), HELD)
    assert (TAINT_UNHEALTHY, "health") in taints(found)
    assert (TAINT_CHANGING, "") in taints(found)


def test_what_only_comes_is_published_beside_a_claim() -> None:
    found = with_layouts_in_use({ADDRESS: devices()}, devices(table=None), HELD)
    assert names(found) == ["drs", "shared", "whole"]
    assert taints(found) == {(TAINT_ALLOCATED_BY, "controller")}


def test_a_new_version_of_the_driver_is_no_change_of_form() -> None:
    found = with_layouts_in_use({ADDRESS: devices(card(driver_version="1.6.0.1"))}, devices(), HELD)
    versions = [each["attributes"]["driverVersion"] for each in found]
    assert versions == [{"version": "1.6.0+1"}] * 3
    assert taints(found) == {(TAINT_ALLOCATED_BY, "controller")}


def test_a_held_card_that_is_not_there_stays_as_lost() -> None:
    old = devices()
    for each in old:
        for taint in each["taints"]:
            taint["timeAdded"] = "2026-01-01T00:00:00Z"
    found = with_layouts_in_use({}, old, HELD)
    assert names(found) == ["drs", "shared", "whole"]
    assert taints(found) == {(TAINT_ALLOCATED_BY, "controller"), (TAINT_UNHEALTHY, "lost")}
    assert not any("timeAdded" in taint for each in found for taint in each["taints"])
    assert with_layouts_in_use({}, old, frozenset()) == []


def test_a_held_card_that_efsmi_has_not_described_since_the_start_is_not_lost() -> None:
    """The agent was updated while the card hangs, for example."""
    found = with_layouts_in_use({}, devices(), HELD, evict={"lost"}, unread=HELD)
    assert taints(found) == {(TAINT_ALLOCATED_BY, "controller"), (TAINT_UNHEALTHY, "efsmi")}
    assert {each["effect"] for device in found for each in device["taints"]} == {"NoSchedule"}


def test_a_held_card_that_is_there_but_offers_nothing_is_not_lost() -> None:
    found = with_layouts_in_use({ADDRESS: []}, devices(), HELD)
    assert taints(found) == {(TAINT_ALLOCATED_BY, "controller"), (TAINT_CHANGING, "")}


def test_devices_that_are_no_cards_of_ours_are_dropped() -> None:
    stranger = {"name": "gcu-7", "attributes": {}}
    assert with_layouts_in_use({}, [stranger], HELD) == []


def test_kube_scheduler_gets_whole_cards_last_and_from_the_other_end() -> None:
    """It takes the first device that fits: shares fill few cards, and whole ones are left."""
    cards = [card(address=PciAddress(0, bus, 0, 0)) for bus in (1, 2)]
    wanted = {each.address: devices(each, allocator="scheduler") for each in cards}
    found = [each["name"] for each in with_layouts_in_use(wanted, [], frozenset())]
    assert found == [
        "drs-0000-01-00-0",
        "drs-0000-02-00-0",
        "shared-0000-01-00-0",
        "shared-0000-02-00-0",
        "whole-0000-02-00-0",
        "whole-0000-01-00-0",
        "admin-0000-01-00-0",
        "admin-0000-02-00-0",
    ]


BY_SCHEDULER = devices(allocator="scheduler")
WITHOUT_ADMIN = [each for each in BY_SCHEDULER if not each["name"].startswith("admin")]


def test_administrators_get_a_device_without_counters_from_kube_scheduler() -> None:
    [admin] = [each for each in BY_SCHEDULER if each not in WITHOUT_ADMIN]
    assert "consumesCounters" not in admin
    assert admin["taints"] == [{"key": TAINT_ADMINISTRATORS, "effect": "NoSchedule"}]
    assert names(devices()) == ["whole", "shared", "drs"]
    parts = devices(offer=CardConfig(modes=frozenset({Mode.SHARED})), allocator="scheduler")
    assert names(parts) == ["shared"]


def test_a_card_in_use_gets_the_device_for_administrators() -> None:
    found = with_layouts_in_use({ADDRESS: BY_SCHEDULER}, WITHOUT_ADMIN, HELD)
    assert names(found) == ["drs", "shared", "whole", "admin"]
    assert taints(found[:-1]) == set()


def test_of_a_lost_card_administrators_get_nothing_either() -> None:
    admin = with_layouts_in_use({}, BY_SCHEDULER, HELD)[-1]
    assert [each["key"] for each in admin["taints"]] == [TAINT_ADMINISTRATORS, TAINT_UNHEALTHY]


def test_a_changing_card_keeps_administrators_to_their_device() -> None:
    fewer = devices(offer=CardConfig(slice_count=2), allocator="scheduler")
    admin = with_layouts_in_use({ADDRESS: fewer}, BY_SCHEDULER, HELD)[-1]
    assert [each["key"] for each in admin["taints"]] == [TAINT_ADMINISTRATORS, TAINT_CHANGING]
