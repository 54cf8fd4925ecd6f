"""Blocks of ``efsmi -q``, as text and as JSON, in the layouts seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.hardware.efsmi.query import QueriedCard, parse_query, parse_query_json
from dra_driver.model.card import Ecc, Readings
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress
from tests.unit.efsmi_outputs import BANNER, OLD_QUERY, QUERY

ADDRESS = PciAddress(0, 0x0D, 0, 0)
CARD = QueriedCard(
    index=0,
    address=ADDRESS,
    model="S60",
    uuid="TPUA10000001",
    memory_mib=42976,
    driver_version="1.5.20260710",
    healthy=True,
    rma=None,
    ecc=Ecc(current=True, pending=True),
    errors=3,
    unclear=(),
)


def one(text: str) -> QueriedCard:
    (card,) = parse_query(text)
    return card


def changed(key: str, value: str | None, text: str = QUERY) -> str:
    """`text` with another value for `key`, or without the key."""
    lines = []
    for line in text.splitlines(keepends=True):
        if line.strip().startswith(f"{key} ") and ":" in line:
            if value is not None:
                lines.append(f"{line.partition(':')[0]}: {value}\n")
        else:
            lines.append(line)
    return "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(QUERY, id="as dumped"),
        pytest.param(BANNER + QUERY, id="banner"),
        pytest.param(QUERY.replace("\n", "\r\n"), id="carriage returns"),
        pytest.param(QUERY.replace("\n", "\n\n"), id="blank lines"),
        pytest.param(QUERY.replace("\n", " \u00a0\n"), id="trailing blanks of all kinds"),
        pytest.param(QUERY.replace("Enflame S60", "S60"), id="name without the vendor"),
        pytest.param(changed("Domain", "00000000"), id="domain of eight digits"),
        pytest.param(changed("Domain", "0"), id="domain without zeros"),
        pytest.param(changed("Cur Power", "N/A"), id="no power"),
        pytest.param(changed("GCU Temp", "39 C"), id="temperature in letters"),
        pytest.param(changed("Total Size", "42976MiB"), id="no blank before the unit"),
        pytest.param(QUERY.replace("DEV ID 0", "    DEV ID 0  "), id="heading indented"),
        pytest.param("\n".join(f"  {line}" for line in QUERY.splitlines()), id="all indented"),
        pytest.param(QUERY.replace("    ", "\t"), id="tabs"),
        pytest.param(
            QUERY.replace("    Power Info", "WARNING the log is full\n---\n    Power Info"),
            id="a foreign line between sections",
        ),
        pytest.param(
            QUERY.replace("        Health ", "WARNING: rotated the log\n        Health "),
            id="a foreign line inside a section",
        ),
        pytest.param(
            QUERY.replace("    Power Info", "    Fan Info\n        Bus : 7\n    Power Info"),
            id="an unknown section with a known key",
        ),
        pytest.param(
            QUERY.replace("        Domain ", "        Location\n        Domain "),
            id="a heading beside the keys that it is not above",
        ),
        pytest.param(
            QUERY.replace("    Power", "        Sub\n            Health : False\n    Power"),
            id="a known key below a heading of its own",
        ),
    ],
)
def test_layouts_that_say_the_same(text: str) -> None:
    assert one(text) == CARD


def test_the_oldest_layout() -> None:
    card = one(OLD_QUERY)
    assert (card.memory_mib, card.driver_version, card.rma) == (42976, "1.2.4.12", False)
    assert (card.errors, card.unclear, card.complete) == (None, (), True)


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("Health", "False", "healthy", False),
        ("Health", "N/A", "healthy", None),
        ("Health", None, "healthy", None),
        ("Current", "Disable", "ecc", Ecc(current=False, pending=True)),
        ("Pending", "disable", "ecc", Ecc(current=True, pending=False)),
        ("Pending", None, "ecc", Ecc(current=True, pending=True)),
        ("Current", "N/A", "ecc", None),
        ("Total Error Count", "N/A", "errors", None),
        ("Dev UUID", "N/A", "uuid", None),
        ("Total Size", None, "memory_mib", None),
        ("Bus", None, "address", None),
        ("Dev Name", "Enflame", "model", None),
        ("Dev UUID", "T" * 256, "uuid", "T" * 256),
        # The kernel's is published; this one stands in for it at best.
        ("Ver", "1" * 257, "driver_version", None),
    ],
)
def test_a_value(key: str, value: str | None, field: str, expected: object) -> None:
    card = one(changed(key, value))
    assert getattr(card, field) == expected
    assert card.unclear == ()


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("GCU Temp", "35 ℃", "temperature", 35.0),
        ("GCU Temp", "39.5 C", "temperature", 39.5),
        ("GCU Temp", "-5℃", "temperature", -5.0),
        ("GCU Temp", "308 K", "temperature", None),
        ("GCU Temp", "N/A", "temperature", None),
        ("Cur Power", "99 W", "power", 99.0),
        ("Cur Power", "99.25", "power", 99.25),
        ("Cur Power", "0.1 kW", "power", None),
        ("Cur Power", None, "power", None),
        ("Used Size", "0 MiB", "memory_used_mib", 0),
        ("Used Size", "1 GiB", "memory_used_mib", None),
    ],
)
def test_what_a_card_measures_never_makes_it_unhealthy(
    key: str, value: str | None, field: str, expected: float | None
) -> None:
    card = one(changed(key, value))
    assert getattr(card.readings, field) == expected
    assert card.unclear == ()


def test_what_a_card_measures_in_other_layouts() -> None:
    assert one(OLD_QUERY).readings == Readings(39.0, None, 1129)
    measured: dict[str, Any] = {"Device Mem Info": {"Total Size": 42976, "Used Size": 7}}
    measured |= {"Temperature Info": {"GCU Temp": 35}, "Power Info": {"Cur Power": "99 W"}}
    assert one_of_json(**measured).readings == Readings(35.0, 99.0, 7)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("Health", "Degraded", "Device Info / Health is 'Degraded'"),
        ("Current", "On", "ECC Mode / Current is 'On'"),
        ("Pending", "?", "ECC Mode / Pending is '?'"),
        ("Total Size", "42 GiB", "Device Mem Info / Total Size is '42 GiB'"),
        ("Total Size", "0 MiB", "Device Mem Info / Total Size is '0 MiB'"),
        ("Total Size", "45063602176", "Device Mem Info / Total Size is '45063602176'"),
        ("Total Size", "44007424", "Device Mem Info / Total Size is '44007424'"),
        ("Bus", "zz", "PCIe Info / Domain Bus Dev Func is '0000 zz 00 0'"),
        ("Dev", "20", "PCIe Info / Domain Bus Dev Func is '0000 0d 20 0'"),
        ("Total Error Count", "many", "Error Records / Total Error Count is 'many'"),
        ("Total Error Count", "9" * 5000, f"Error Records / Total Error Count is '{'9' * 119}…'"),
        ("Dev UUID", "T" * 257, f"Device Info / Dev UUID is '{'T' * 119}…'"),
        ("Health", "\x1b[31mFalse", "Device Info / Health is '\ufffd[31mFalse'"),
    ],
)
def test_what_is_not_understood_is_told_with_its_place(key: str, value: str, told: str) -> None:
    assert one(changed(key, value)).unclear == (told,)


def test_an_oddity_of_one_card_costs_no_other() -> None:
    odd = changed("Bus", "zz").replace("DEV ID 0", "DEV ID 7")
    first, second = parse_query(odd + QUERY)
    assert (first.index, first.address, first.complete) == (7, None, False)
    assert second == CARD


def test_a_block_that_was_cut_off_is_incomplete() -> None:
    first, second = parse_query(QUERY + "DEV ID 1\n    Device Info\n        Dev Na")
    assert first == CARD
    assert (second.index, second.complete) == (1, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"printed: \)"),
        (BANNER, "printed: -----"),
        ("Error: failed to open /dev/gcu0\n\n", "printed: Error: failed to open /dev/gcu0"),
        ("\ufffd\x00\x1b]0;\x07", "printed: \ufffd\ufffd\ufffd]0;\ufffd"),
    ],
    ids=["nothing", "banner only", "error text with success", "garbage"],
)
def test_no_card_at_all_is_an_error(text: str, said: str) -> None:
    with pytest.raises(HardwareError, match=said):
        parse_query(text)


def document(**sections: Any) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": 0,
        "Driver Info": {"Ver": "1.5.20260710"},
        "Device Info": {
            "Dev Name": "Enflame S60",
            "Dev UUID": "TPUA10000001",
            "Dev SN": "A1B2C30410001   ",
            "Health": "True",
        },
        "PCIe Info": {"Domain": "0000", "Bus": "0d", "Dev": "00", "Func": "0"},
        "Device Mem Info": {"Total Size": "42976 MiB"},
        "ECC Mode": {"Current": "Enable", "Pending": "Enable"},
        "Error Records": {"Total Error Count": "3"},
    }
    return {"devices": [described | sections]}


def one_of_json(**sections: Any) -> QueriedCard:
    [card] = parse_query_json(json.dumps(document(**sections))) or ()
    return card


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({}, id="values with units"),
        pytest.param({"Device Mem Info": {"Total Size": 42976}}, id="bare number"),
        pytest.param({"Device Mem Info": {"Total Size": 42976.0}}, id="float"),
        pytest.param({"Device Mem Info": {"Total Size": "42976"}}, id="number as text"),
        pytest.param({"Error Records": {"Total Error Count": 3}}, id="count"),
        pytest.param({"Fans": ["a", "b"], "Extra": {"Bus": 1}}, id="more sections"),
    ],
)
def test_json_that_says_the_same(sections: dict[str, Any]) -> None:
    assert one_of_json(**sections) == CARD
    assert parse_query_json(BANNER + json.dumps(document(**sections), indent=2)) == (CARD,)


def test_json_flags_can_be_booleans() -> None:
    info = document()["devices"][0]["Device Info"] | {"Health": False}
    assert one_of_json(**{"Device Info": info}).healthy is False


def test_json_addresses_in_numbers_are_not_guessed_at() -> None:
    card = one_of_json(**{"PCIe Info": {"Domain": 0, "Bus": 10, "Dev": 0, "Func": 0}})
    assert card.address is None
    assert card.unclear == ("PCIe Info / Domain Bus Dev Func is '0 10 0 0'",)


def test_half_a_character_of_json_and_what_a_terminal_acts_upon_are_replaced() -> None:
    """Nothing can encode the former, so it would end the thread that publishes all cards."""
    card = one_of_json(**{"Device Info": {"Dev Name": "S60\ud800", "Dev UUID": "T\0PU\x1b[2J"}})
    assert (card.model, card.uuid) == ("S60\ufffd", "T\ufffdPU\ufffd[2J")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(QUERY, id="text: the tool ignores what it does not know"),
        pytest.param("", id="nothing"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="no devices"),
        pytest.param('{"devices": []}', id="empty"),
        pytest.param('{"devices": {"0": {}}}', id="devices by index"),
        pytest.param('{"devices": [{"id": "0"}]}', id="index as text"),
        pytest.param('{"devices": [{"id": true}]}', id="index as truth"),
        pytest.param('{"devices": [{"id": -1}]}', id="index below 0"),
        pytest.param('{"devices": [null]}', id="no object"),
        pytest.param(json.dumps(document())[:-9], id="cut off"),
        pytest.param('{"devices": ' + "[" * 100_000, id="too deep"),
        pytest.param('{"devices": [{"id": ' + "9" * 5000 + "}]}", id="too long a number"),
    ],
)
def test_other_json_is_none(text: str) -> None:
    assert parse_query_json(text) is None
