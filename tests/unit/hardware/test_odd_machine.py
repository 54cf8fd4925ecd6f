"""What efsmi says that cannot be right: told with its place, and at no other card's cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dra_driver.hardware.efsmi.runner import EfsmiFailed
from dra_driver.model.errors import HardwareError
from tests.unit.hardware.doctored import (
    OLD_TOOL,
    DoctoredEfsmi,
    Edit,
    addresses,
    inventory,
    reader,
    reasons,
    three,
)


def test_a_value_that_is_not_understood_taints_that_card_alone(tmp_path: Path) -> None:
    edit = {"-q": in_block(2, "Health                  : True", "Health : Degraded")}
    first, *others = inventory(three(tmp_path, efsmi={"json": False}), edit).cards
    (problem,) = first.problems
    assert problem.value == "efsmi"
    assert problem.text.endswith("Device Info / Health is 'Degraded'")
    assert [other.problems for other in others] == [(), ()]


def in_block(index: int, old: str, new: str) -> Edit:
    """Replace text in the block of one card."""

    def edit(text: str) -> str:
        head, block = text.split(f"DEV ID {index}\n")
        block, next_block, rest = block.partition("DEV ID")
        assert old in block, old
        return f"{head}DEV ID {index}\n{block.replace(old, new)}{next_block}{rest}"

    return edit


def replaced(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert old in text, old
        return text.replace(old, new)

    return edit


def without_json(text: str) -> str:
    raise EfsmiFailed("`efsmi -q --json-format` ended with 2: unknown arguments")


ODDITIES = [
    pytest.param(
        {"-q": in_block(2, "Bus                     : 0d", "Bus : zz")},
        {"0000:0d:00.0": r"of DEV ID 2 PCIe Info / Domain Bus Dev Func is '0000 zz 00 0'"},
        id="an address that is none",
    ),
    pytest.param(
        {"-q": in_block(2, "Bus                     : 0d", "Bus : 0e")},
        {
            "0000:0d:00.0": "efsmi does not list card 0000:0d:00.0",
            "0000:0e:00.0": "PCI address 0000:0e:00.0 to several cards (DEV ID 1 and 2)",
        },
        id="two cards of one address",
    ),
    pytest.param(
        {"-q": replaced("DEV ID 2", "DEV ID 1")},
        {
            "0000:0d:00.0": "DEV ID 1 for card 0000:0d:00.0 and for another",
            "0000:0e:00.0": "DEV ID 1 for card 0000:0e:00.0 and for another",
        },
        id="two cards of one index",
    ),
    pytest.param(
        {"-q": in_block(2, "Total Size              : 42976 MiB", "Total Size : 42 GiB")},
        {"0000:0d:00.0": "(index 2); Device Mem Info / Total Size is '42 GiB'"},
        id="memory in another unit",
    ),
    pytest.param(
        {"-q": in_block(2, "Dev UUID ", "UUID ")},
        {"0000:0d:00.0": "does not tell name, uuid and memory of card 0000:0d:00.0 (index 2)"},
        id="no uuid",
    ),
    pytest.param(
        {"-q": lambda text: text[: text.index("DEV ID 2")]},
        {"0000:0d:00.0": "efsmi does not list card 0000:0d:00.0"},
        id="a card in sysfs alone",
    ),
    pytest.param(
        {"": replaced("42976MiB Disable | 0%          SN", "42976MiB vGCU    | 0%          SN")},
        {"0000:0d:00.0": "no known GCU Virt for card 0000:0d:00.0 (index 2), but 'vGCU'"},
        id="an unknown mode",
    ),
    pytest.param(
        {"": replaced("00:0d:00.0", "00:1d:00.0")},
        {"0000:0d:00.0": "shows 1d:00.0 at index 2, where card 0000:0d:00.0 was"},
        id="indexes moved between two calls",
    ),
    pytest.param(
        {"": replaced("| 2      Enflame S60", "| 1      Enflame S60")},
        {
            "0000:0d:00.0": "shows card 0000:0d:00.0 (index 2) not at all",
            "0000:0e:00.0": "shows card 0000:0e:00.0 (index 1) several times",
        },
        id="an index twice in the summary",
    ),
    pytest.param(
        {"": replaced("42976MiB Disable | 0%          SN", "42976MiB SRIOV   | 0%          SN")},
        {"0000:0d:00.0": "is in SR-IOV mode, which this driver does not serve"},
        id="SR-IOV",
    ),
]


@pytest.mark.parametrize(("edits", "told"), ODDITIES)
def test_what_is_wrong_with_one_card_costs_no_other(
    tmp_path: Path, edits: dict[str, Edit], told: dict[str, str]
) -> None:
    machine = three(tmp_path, efsmi={"json": False})
    # The first card's cell in the summary is known by its serial number.
    serial = machine.state().cards[0].serial
    machine_edits = {
        call: (lambda text, edit=edit: edit(text.replace(serial, "SN")))
        for call, edit in edits.items()
    }
    found = inventory(machine, machine_edits)
    assert sorted(reasons(found)) == sorted(told)
    for address, reason in told.items():
        assert reason in reasons(found)[address]
    everyone = {"0000:0d:00.0", "0000:0e:00.0", "0000:0f:00.0"}
    assert addresses(found) == sorted(everyone - told.keys())


def test_addresses_that_q_does_not_print_come_from_the_list(tmp_path: Path) -> None:
    machine = three(tmp_path, efsmi=OLD_TOOL)
    found = inventory(machine, {"-q": lambda text: text.replace("PCIe Info", "Something Else")})
    assert not found.failures
    assert [(str(card.address), card.index) for card in found.cards] == [
        ("0000:0d:00.0", 2),
        ("0000:0e:00.0", 1),
        ("0000:0f:00.0", 0),
    ]


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(lambda _: "", id="not listed"),
        pytest.param(lambda text: text.replace(" 1  ", " 2  "), id="listed twice"),
        pytest.param(without_json, id="list refused"),
    ],
)
def test_without_a_usable_list_only_cards_without_address_are_lost(
    tmp_path: Path, listed: Edit
) -> None:
    edits = {"-q": in_block(2, "PCIe Info", "Something Else"), "-L": listed}
    found = inventory(three(tmp_path, efsmi={"json": False}), edits)
    assert addresses(found) == ["0000:0e:00.0", "0000:0f:00.0"]
    assert reasons(found)["0000:0d:00.0"].endswith(
        "of DEV ID 2 neither `efsmi -q` nor `-L` tells its address"
    )


def without_memory(text: str) -> str:
    document = json.loads(text)
    del document["devices"][0]["Device Mem Info"]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("json_edit", "more_calls"),
    [
        pytest.param(str, [], id="JSON tells all"),
        pytest.param(without_json, ["-q"], id="refused"),
        pytest.param(lambda _: "DEV ID 0\n", ["-q"], id="answered with text"),
        pytest.param(without_memory, ["-q"], id="incomplete"),
    ],
)
def test_text_is_asked_only_where_json_does_not_do(
    tmp_path: Path, json_edit: Edit, more_calls: list[str]
) -> None:
    machine = three(tmp_path)
    efsmi = DoctoredEfsmi(machine, {"-q --json-format": json_edit})
    assert len(reader(machine, efsmi).inventory().cards) == 3
    assert efsmi.calls == ["-q --json-format", *more_calls, ""]


@pytest.mark.parametrize("call", ["-q", ""], ids=["text", "summary"])
def test_a_tool_that_prints_garbage_is_not_a_machine_without_cards(
    tmp_path: Path, call: str
) -> None:
    edits: dict[str, Edit] = {"-q --json-format": without_json}
    edits[call] = lambda _: "\ufffd\ufffd\x00 oops\n"
    with pytest.raises(HardwareError, match="printed: \ufffd\ufffd\ufffd oops"):
        inventory(three(tmp_path), edits)
