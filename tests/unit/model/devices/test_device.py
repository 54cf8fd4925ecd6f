"""Devices of a ResourceSlice, and the limits that the API server puts on them (1.36.3,
k8s.io/api/resource/v1/types.go and pkg/apis/resource/validation)."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model import names
from dra_driver.model.card import UNHEALTHY_VALUES, Card, Problem
from dra_driver.model.devices.device import (
    admin_device,
    counter_sets,
    device_name,
    exclusion,
    is_admin_device,
    parse_device_name,
    whole_device,
)
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.quantity import format_binary, parse_quantity
from tests.unit.model.cards import CARD, OTHER, addresses

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")

texts = st.text(min_size=1, max_size=200)
# Of each taint: its value, and none. Only a problem of that value evicts, or none of it does.
taints = [
    (taint, value)
    for name, taint in vars(names).items()
    if name.startswith("TAINT_") and taint not in names.TAINTS_OF_CLAIMS
    for value in (UNHEALTHY_VALUES if taint == names.TAINT_UNHEALTHY else ("",))
]
problems = st.builds(
    lambda kind, text, evicts: Problem(kind[0], kind[1], text, evicts),
    st.sampled_from(taints),
    texts,
    st.booleans(),
)
# A field that is not named here is drawn by its type.
DRAWN: dict[str, Any] = {each.name: ... for each in fields(Card)} | {
    "address": addresses,
    "model": texts,
    "uuid": texts,
    "driver_version": texts,
    "memory_mib": st.integers(1, 2**24) | st.sampled_from([2**10, 2**20]),
    "numa_node": st.none() | st.integers(0, 1000),
    "pcie_root": st.none() | st.just("pci0000:0a"),
    "pcie_bridges": st.lists(addresses.map(str), max_size=20).map(tuple),
    "problems": st.lists(problems, unique_by=lambda each: (each.taint, each.value)).map(tuple),
}
cards = st.builds(Card, **DRAWN)
# What changes at a reboot, what the node alone needs, and what has events in place of attributes.
UNPUBLISHED = {
    "index",
    "minor",
    "ecc",
    "virtualization",
    "nodes",
    "missing_nodes",
    "errors",
    "readings",
}


def whole(card: Card, sips: int | None = None) -> dict[str, Any]:
    return whole_device(card, allocator=names.ALLOCATOR_CONTROLLER, sips=sips)


def test_a_whole_card() -> None:
    assert whole(CARD, sips=24) == {
        "name": "whole-0000-0d-00-0",
        "attributes": {
            "type": {"string": "whole"},
            "card": {"string": "0000:0d:00.0"},
            "model": {"string": "S60"},
            "uuid": {"string": "TPUA10000001"},
            "memoryMiB": {"int": 42976},
            "sips": {"int": 24},
            "driverVersion": {"version": "1.5.20260710"},
            "pcieSwitch": {"string": "0000:0b:00.0"},
            "pcieBridges": {"string": "0a:01.0/0b:00.0/0c:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:0a"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:0d:00.0"},
            "resource.kubernetes.io/numaNode": {"int": 1},
        },
        "capacity": {"memory": {"value": "42976Mi"}},
        "taints": [
            {
                "key": "gcu.enflame.com/allocated-by",
                "value": "controller",
                "effect": "NoSchedule",
            }
        ],
    }


def test_what_is_not_known_is_left_out() -> None:
    bare = replace(CARD, numa_node=None, pcie_root=None, pcie_bridges=())
    left = whole(CARD, sips=24)["attributes"].keys() - whole(bare)["attributes"].keys()
    assert left == {
        "sips",
        "pcieSwitch",
        "pcieBridges",
        "resource.kubernetes.io/pcieRoot",
        "resource.kubernetes.io/numaNode",
    }


def test_numa_node_0_is_a_node() -> None:
    attributes = whole(replace(CARD, numa_node=0))["attributes"]
    assert attributes["resource.kubernetes.io/numaNode"] == {"int": 0}


@pytest.mark.parametrize("field", [each.name for each in fields(Card)])
def test_a_field_is_published_unless_it_is_known_not_to_be(field: str) -> None:
    assert getattr(OTHER, field) != getattr(CARD, field), "give it another value"
    changed = replace(CARD, **{field: getattr(OTHER, field)})
    assert (whole(changed) == whole(CARD)) is (field in UNPUBLISHED)


@given(cards, st.none() | st.integers(0, 10**6))
def test_every_device_is_within_the_limits_of_the_api(card: Card, sips: int | None) -> None:
    device = whole(card, sips)
    assert LABEL.fullmatch(device["name"])
    assert len(device["attributes"]) + len(device["capacity"]) <= 32
    for name, attribute in device["attributes"].items():
        domain, _, identifier = name.rpartition("/")
        assert IDENTIFIER.fullmatch(identifier)
        assert not domain or SUBDOMAIN.fullmatch(domain)
        ((kind, value),) = attribute.items()
        assert kind in {"string", "int"}
        # The server counts bytes.
        assert kind == "int" or len(value.encode()) <= 64
    memory = device["capacity"]["memory"]["value"]
    assert format_binary(int(parse_quantity(memory))) == memory
    assert len(device["taints"]) <= 16
    for taint in device["taints"]:
        assert taint.keys() <= {"key", "value", "effect"}
        assert LABEL_VALUE.fullmatch(taint.get("value", "")), "values are label values"


def test_a_text_is_cut_between_characters() -> None:
    attributes = whole(replace(CARD, uuid="é" * 40, model="x" + "é" * 40))["attributes"]
    assert attributes["uuid"]["string"] == "é" * 32
    assert attributes["model"]["string"] == "x" + "é" * 31


def test_each_problem_is_one_taint_whatever_its_order() -> None:
    some = (
        Problem(names.TAINT_UNHEALTHY, "rma", "flagged"),
        Problem(names.TAINT_FOREIGN, "", "an instance"),
        Problem(names.TAINT_FOREIGN, "", "another instance"),
        Problem(names.TAINT_UNHEALTHY, "health", "false"),
    )
    expected = [
        {"key": names.TAINT_ALLOCATED_BY, "value": "controller", "effect": "NoSchedule"},
        {"key": names.TAINT_FOREIGN, "effect": "NoSchedule"},
        {"key": names.TAINT_UNHEALTHY, "value": "health", "effect": "NoSchedule"},
        {"key": names.TAINT_UNHEALTHY, "value": "rma", "effect": "NoSchedule"},
    ]
    for order in (some, some[::-1]):
        found = exclusion(replace(CARD, problems=order), allocator=names.ALLOCATOR_CONTROLLER)[
            "taints"
        ]
        assert found == expected


def test_kube_scheduler_excludes_modes_by_the_cards_counter() -> None:
    lost = Problem(names.TAINT_UNHEALTHY, "lost", "gone")
    found = exclusion(replace(CARD, problems=(lost,)), allocator=names.ALLOCATOR_SCHEDULER)
    counters = {"card": {"value": "1"}}
    assert found == {
        "taints": [{"key": names.TAINT_UNHEALTHY, "value": "lost", "effect": "NoSchedule"}],
        "consumesCounters": [{"counterSet": CARD.address.slug, "counters": counters}],
    }
    assert counter_sets([found, found]) == [{"name": CARD.address.slug, "counters": counters}]
    assert counter_sets([whole(CARD), whole(CARD)]) == []


@given(st.sampled_from(Mode), addresses)
def test_a_name_tells_mode_and_card(mode: Mode, address: PciAddress) -> None:
    assert parse_device_name(device_name(mode, address)) == (mode, address)


@given(addresses)
def test_administrators_see_a_whole_card(address: PciAddress) -> None:
    name = f"admin-{address.slug}"
    assert parse_device_name(name) == (Mode.WHOLE, address)
    assert is_admin_device(name)
    assert not any(is_admin_device(device_name(mode, address)) for mode in Mode)


def test_the_device_for_administrators() -> None:
    lost = Problem(names.TAINT_UNHEALTHY, "lost", "lost")
    found = admin_device(replace(CARD, problems=(lost,)), sips=24)
    expected = whole(CARD, sips=24)
    assert found["attributes"] == expected["attributes"] | {"type": {"string": "admin"}}
    assert found["capacity"] == expected["capacity"]
    assert [each["key"] for each in found["taints"]] == [
        names.TAINT_ADMINISTRATORS,
        names.TAINT_UNHEALTHY,
    ]
    assert "consumesCounters" not in found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("whole-00000000-0d-00-0", id="a second spelling of an address"),
        pytest.param("whole-0000-0d-20-0", id="no address"),
        pytest.param("whole-0000-0D-00-0", id="upper case"),
        pytest.param("half-0000-0d-00-0", id="another mode"),
        pytest.param("whole-0000-0d-00", id="cut off"),
        pytest.param("whole-0000-0d-00-0\n", id="something behind it"),
        pytest.param("gcu-0", id="by index"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_name_of_no_device_of_ours(name: str) -> None:
    with pytest.raises(InvalidValue, match="not one that this driver publishes") as caught:
        parse_device_name(name)
    assert repr(name) in caught.value.what
