"""What efsmi prints, against dumps of real machines (with made-up values)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.simulator.commands import drs, operations
from dra_driver.simulator.commands.command import parse
from dra_driver.simulator.description.resolve import first_state
from dra_driver.simulator.description.spec import MachineSpec
from dra_driver.simulator.state import MachineState
from tests.unit.efsmi_outputs import BANNER, INSTANCE_ROW, INSTANCES, LIST

NOON = 1_767_240_000.0

QUERY = """\
DEV ID 0
    Driver Info
        Ver                     : 1.5.20260710
    Device Info
        Dev Name                : Enflame S60
        Dev UUID                : TPUA10000001
        Dev SN                  : A1B2C30410001___
        Dev PN                  : EFB-0000000-00______
        Dev MFD                 : 2025-1-1
        Health                  : True
    PCIe Info
        Vendor ID               : 1e36
        Device ID               : c035
        Domain                  : 0000
        Bus                     : 0d
        Dev                     : 00
        Func                    : 0
        Link Info_______________
            Max Link Speed      : Gen5
            Max Link Width      : X16
            Cur Link Speed      : Gen4
            Cur Link Width      : X16
            Tx Throughput       : 0 MiB/s
            Rx Throughput       : 0 MiB/s
    Power Info
        Power Capa              : 300 W
        Cur Power               : 99 W
        Dpm Level               : Sleep
    Device Mem Info
        Total Size              : 42976 MiB
        Reserved Size           : 1129 MiB
        Used Size               : 0 MiB
        Free Size               : 41847 MiB
    Temperature Info
        GCU Temp                : 35 ℃
    Device Usage Info
        GCU Usage               : 0.0 %
    ECC Mode
        Current                 : Enable
        Pending                 : Enable
    Error Records
        Total Error Count       : 0
        Reset Count             : 0
        Last Reset Date         : N/A
    Error Details
        User Triggered Reset    : 0
        Internal Error          : 0
        SIP Error               : 0
        Bus Error               : 0
        FW Error                : 0
        DTE Error               : 0
        DRAM HBM Error          : 0
        PCIE Error              : 0
        GCU-LARE Error          : 0
        Unknown Error           : 0
""".replace("_", " ")

SUMMARY = """\
| EFSMI    1.4.0.3         Driver Ver: 1.4.0.3                               |
|----------------------------------------------------------------------------|
|----------------------------------------------------------------------------|
| DEV    NAME                 | FW VER           | BUS-ID      ECC           |
| TEMP   Dpm   Pwr(Usage/Cap) | Mem     GCU Virt | DUsed       SN            |
|----------------------------------------------------------------------------|
| 0      Enflame S60          | 33.6.5           | 00:0d:00.0  Enable        |
| 71℃    Sleep    118W / 300W | 42976MiB Disable | 0%          A1B2C30410001 |
+----------------------------------------------------------------------------+
"""

PROFILES = """\
| 0      1g.6gb     0      6      6860MiB     4  |
| 0      3g.20gb    1      2     20580MiB    12  |
| 0      6g.40gb    2      1     41160MiB    24  |
"""

CARD = {
    "bdf": "0000:0d:00.0",
    "model": "S60",
    "serial": "A1B2C30410001",
    "uuid": "TPUA10000001",
    "slot": "PCIE5 (X16)",
    "cpuAffinity": "0-7,32-39",
}
OTHER = {
    **CARD,
    "bdf": "0000:0f:00.0",
    "serial": "A1B2C30410002",
    "uuid": "TPUA10000002",
    "slot": "N/A",
}
FOREIGN = {"profile": "1g.6gb", "uuid": "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11"}


def state(*cards: dict[str, Any], driver: str = "1.5.20260710", **efsmi: Any) -> MachineState:
    described = {"driverVersion": driver, "efsmi": {"rmaInfo": False, **efsmi}, "cards": cards}
    return first_state(MachineSpec.model_validate(described))


def printed(machine: MachineState, *argv: str) -> str:
    effect = operations.perform(machine, parse(argv), {}, NOON)
    assert effect.exit_code == 0, effect.error
    return effect.out.decode()


def test_list() -> None:
    assert printed(state(CARD, OTHER), "-L") == BANNER + LIST


def test_list_of_one_card_has_its_instances() -> None:
    machine = state({**CARD, "instances": [FOREIGN]}, OTHER, banner=False)

    assert printed(machine, "-i", "0", "-L") == "".join(LIST.splitlines(True)[:3]) + INSTANCE_ROW


def test_list_of_all_cards_has_no_instances() -> None:
    assert "1g.6gb" not in printed(state({**CARD, "instances": [FOREIGN]}), "-L")


def test_query() -> None:
    assert printed(state(CARD), "-q") == BANNER + QUERY


def test_query_of_one_card_has_no_other() -> None:
    text = printed(state(CARD, OTHER, banner=False), "-i", "1", "-q")

    assert text.startswith("DEV ID 1\n")
    assert "TPUA10000001" not in text


def test_summary() -> None:
    machine = state(
        {**CARD, "temperature": 71, "powerWatts": 118}, driver="1.4.0.3", version="1.4.0.3"
    )

    text = printed(machine).removeprefix(BANNER)

    first, rest = text.split("\n", 1)
    assert rest == SUMMARY
    assert len(first) == 78
    assert first.startswith("+2026-01-01, ")


def test_summary_with_instances_has_a_second_table() -> None:
    machine = state({**CARD, "instances": [FOREIGN]})

    text = printed(machine)

    assert text.endswith(INSTANCES)
    assert "| 42976MiB DRS     |" in text


def test_profiles() -> None:
    machine = state(CARD, banner=False)
    machine = machine.with_card(drs.switch_on(machine.cards[0]))

    assert printed(machine, "-i", "0", "--drs", "--list-profile") == PROFILES


def test_instances_in_the_older_layout() -> None:
    machine = state({**CARD, "instances": [FOREIGN, {"profile": "3g.20gb"}]}, banner=False)

    text = printed(machine, "-i", "0", "--drs", "--list-instance")

    rows = [line.strip("| ").split() for line in text.splitlines()]
    assert rows == [["0", "1g.6gb", "0", "1", "0:1"], ["0", "3g.20gb", "1", "2", "1:3"]]


@pytest.mark.parametrize(
    ("efsmi", "card", "argv", "line"),
    [
        pytest.param({"header": "DEV"}, {}, ["-L"], "DEV    SN      ", id="older-header"),
        pytest.param(
            {}, {"bdf": "00000000:0d:00.0"}, ["-L"], " 00000000:0d:00.0 0-7", id="long-domain"
        ),
        pytest.param(
            {},
            {"bdf": "00000000:0d:00.0"},
            ["-q"],
            "Domain                  : 00000000\n",
            id="domain",
        ),
        pytest.param(
            {},
            {"bdf": "10000:01:00.0"},
            ["-q"],
            "Domain                  : 10000\n",
            id="five-digits",
        ),
        pytest.param(
            {}, {"bdf": "10000:01:00.0"}, ["-L"], " 10000:01:00.0 ", id="five-digits-in-the-list"
        ),
        pytest.param(
            {}, {"bdf": "10000:01:00.0"}, [], "| 00:01:00.0 ", id="five-digits-in-the-summary"
        ),
        pytest.param(
            {"keys": "old"},
            {},
            ["-q"],
            "        Mem Size                : 42976 MiB\n",
            id="old-memory",
        ),
        pytest.param(
            {"keys": "old"}, {}, ["-q"], "        Cur Link Speed          : Gen4\n", id="old-link"
        ),
        pytest.param(
            {"vendorInName": False}, {}, ["-q"], "Dev Name                : S60\n", id="short-name"
        ),
        pytest.param(
            {"temperatureUnit": "C"}, {}, ["-q"], "GCU Temp                : 35 C\n", id="letter-c"
        ),
        pytest.param({"temperatureUnit": "C"}, {}, [], "| 35 C   Sleep ", id="letter-c-summary"),
        pytest.param(
            {}, {"powerWatts": "N/A"}, ["-q"], "Cur Power               : N/A\n", id="no-power"
        ),
        pytest.param(
            {}, {"powerWatts": "N/A"}, [], "Sleep     N/A / 300W |", id="no-power-summary"
        ),
        pytest.param(
            {"rmaInfo": True}, {"rma": True}, ["-q"], "Flags                   : True\n", id="rma"
        ),
        pytest.param(
            {}, {"health": False}, ["-q"], "Health                  : False\n", id="health"
        ),
        pytest.param(
            {},
            {"errors": {"SIP Error": 2, "PCIE Error": 1}},
            ["-q"],
            "Total Error Count       : 3\n",
            id="errors",
        ),
        pytest.param(
            {}, {"eccPending": "Disable"}, ["-q"], "Pending                 : Disable\n", id="ecc"
        ),
        pytest.param({}, {"virtualization": "SRIOV"}, [], "42976MiB SRIOV   |", id="sriov"),
    ],
)
def test_variants(efsmi: dict[str, Any], card: dict[str, Any], argv: list[str], line: str) -> None:
    assert line in printed(state({**CARD, **card}, **efsmi), *argv)


def test_json_has_the_sections_of_the_text() -> None:
    document = json.loads(printed(state(CARD, OTHER), "-q", "--json-format"))

    assert [device["id"] for device in document["devices"]] == [0, 1]
    first = document["devices"][0]
    assert first["Device Mem Info"]["Total Size"] == "42976 MiB"
    assert first["PCIe Info"]["Link Info"]["Cur Link Speed"] == "Gen4"


def test_json_without_units_has_numbers() -> None:
    document = json.loads(printed(state(CARD, jsonUnits=False), "-q", "--json-format"))

    first = document["devices"][0]
    assert first["Device Mem Info"]["Total Size"] == 42976
    assert first["Device Usage Info"]["GCU Usage"] == 0.0
    assert first["Device Info"]["Dev Name"] == "Enflame S60"
