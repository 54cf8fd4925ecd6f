"""The join of sysfs and efsmi, on simulated machines, whatever version of the tool answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_driver.hardware.efsmi import Efsmi, EfsmiFailed
from dra_driver.hardware.machine import Inventory, Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.card import Ecc, Virtualization
from dra_driver.model.effects import Effects
from dra_driver.model.errors import HardwareError
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.hardware.doctored import DoctoredEfsmi, Edit, inventory

OLD_TOOL = {
    "header": "DEV",
    "banner": False,
    "json": False,
    "keys": "old",
    "vendorInName": False,
    "temperatureUnit": "C",
    "instanceRows": False,
}


def simulated(root: Path, source: str | dict[str, Any] = "s60-4") -> SimulatedMachine:
    return SimulatedMachine.create(source, root / "machine", plain_device_files=True)


def three(root: Path, card: dict[str, Any] | None = None, **keys: Any) -> SimulatedMachine:
    """Cards 0000:0d:00.0, 0000:0e:00.0 and 0000:0f:00.0; the first has index 2, the last 0."""
    cards = [
        {"bdf": f"0000:{0x0D + at:02x}:00.0", "model": "S60", "index": 2 - at, **(card or {})}
        for at in range(3)
    ]
    return simulated(root, {"cards": cards, **keys})


def addresses(found: Inventory) -> list[str]:
    return [str(card.address) for card in found.cards]


def reasons(found: Inventory) -> dict[str, str]:
    return {str(address): reason for address, reason in found.unusable.items()}


@pytest.mark.parametrize("name", ["s60-ecc-8", "s60-4", "mixed-t20"])
def test_shipped_machines_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    machine = simulated(tmp_path, name)
    # Once by a process of its own, as on a node.
    efsmi = Efsmi(machine.efsmi_path, timeout=20, effects=Effects())
    found = Machine(Sysfs(machine.root), efsmi).inventory()
    assert not found.unusable
    assert addresses(found) == [card.bdf for card in machine.state().cards]
    for card in found.cards:
        truth = machine.card(str(card.address))
        assert (card.index, card.minor) == (truth.efsmi_index, truth.minor)
        assert card.index != card.minor
        assert (card.model, card.uuid, card.serial) == (truth.model, truth.uuid, truth.serial)
        assert card.memory_mib == truth.form.memory_mib
        assert card.driver_version == machine.state().driver_version
        assert card.ecc is None or card.ecc.current == (truth.ecc_current == "Enable")
        assert card.numa_node == (truth.numa_node if truth.numa_node >= 0 else None)
        assert card.nodes[0].path == f"/dev/gcu{truth.minor}"
        assert (card.virtualization, card.problems) == (Virtualization.DISABLED, ())


@pytest.mark.parametrize(
    ("efsmi", "card", "keys"),
    [
        pytest.param({}, {}, {}, id="newest tool"),
        pytest.param(OLD_TOOL, {}, {}, id="oldest tool"),
        pytest.param({"jsonUnits": False}, {}, {}, id="JSON without units"),
        pytest.param({"json": False}, {}, {}, id="no JSON"),
        pytest.param({"rmaInfo": False}, {}, {}, id="no RMA section"),
        pytest.param({"json": False}, {"powerWatts": "N/A"}, {}, id="no power"),
        pytest.param({"json": False}, {"slot": "PCIE5 (X16)"}, {}, id="slot with a blank"),
        pytest.param({}, {}, {"driverDirectory": "zixiao"}, id="Tencent's driver"),
    ],
)
def test_versions_of_the_tool(
    tmp_path: Path, efsmi: dict[str, Any], card: dict[str, Any], keys: dict[str, Any]
) -> None:
    machine = three(tmp_path, card, efsmi=efsmi, **keys)
    found = inventory(machine)
    assert not found.unusable
    told = [(str(c.address), c.index, c.minor, c.model, c.memory_mib) for c in found.cards]
    assert told == [
        ("0000:0d:00.0", 2, 0, "S60", 42976),
        ("0000:0e:00.0", 1, 1, "S60", 42976),
        ("0000:0f:00.0", 0, 2, "S60", 42976),
    ]


@pytest.mark.parametrize("tool", [{}, {"json": False}], ids=["JSON", "text"])
def test_domains_of_eight_digits_in_efsmi_are_four_in_sysfs(
    tmp_path: Path, tool: dict[str, Any]
) -> None:
    cards = [{"bdf": "00000001:0d:00.0", "model": "S60"}, {"bdf": "0000:0d:00.0", "model": "S60"}]
    found = inventory(simulated(tmp_path, {"cards": cards, "efsmi": tool}))
    assert not found.unusable
    assert addresses(found) == ["0000:0d:00.0", "0001:0d:00.0"]
    assert [card.index for card in found.cards] == [1, 0]


@pytest.mark.parametrize(
    ("set_card", "problems"),
    [
        ({"health": False}, [("unhealthy", "health")]),
        ({"rma": True}, [("unhealthy", "rma")]),
        ({"eccPending": "Disable"}, [("unhealthy", "pending")]),
    ],
    ids=["health", "rma", "ecc"],
)
def test_problems_of_one_card(
    tmp_path: Path, set_card: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    machine = three(tmp_path)
    machine.set_card("0000:0d:00.0", **set_card)
    first, *others = inventory(machine).cards
    told = [(p.taint.removeprefix("gcu.enflame.com/"), p.value) for p in first.problems]
    assert told == problems
    assert all(problem.text for problem in first.problems)
    assert [other.problems for other in others] == [(), ()]


def test_drs_mode_is_told_and_no_problem(tmp_path: Path) -> None:
    """Whose it is, the journal knows."""
    machine = three(tmp_path)
    machine.efsmi("-i", "2", "--drs", "on")
    first, *_ = inventory(machine).cards
    assert (first.virtualization, first.problems) == (Virtualization.DRS, ())


def test_ecc_is_told_now_and_after_the_reset(tmp_path: Path) -> None:
    machine = three(tmp_path)
    machine.set_card("0000:0d:00.0", eccPending="Disable")
    assert inventory(machine).cards[0].ecc == Ecc(current=True, pending=False)


def test_a_value_that_is_not_understood_taints_that_card_alone(tmp_path: Path) -> None:
    edit = {"-q": in_block(2, "Health                  : True", "Health : Degraded")}
    first, *others = inventory(three(tmp_path, efsmi={"json": False}), edit).cards
    (problem,) = first.problems
    assert (problem.value, problem.text.endswith("Device Info / Health is 'Degraded'")) == (
        "efsmi",
        True,
    )
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
    raise EfsmiFailed("`efsmi -q --json-format` ended with 2: unknown arguments", 2)


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
        {"-q": lambda text: text[: text.index("DEV ID 2") + 40]},
        {"0000:0d:00.0": "not tell name, uuid and memory of card 0000:0d:00.0 (index 2)"},
        id="output cut off in the last card",
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
    machine_edits = {
        call: (lambda text, edit=edit: edit(text.replace(serial(machine, 0), "SN")))
        for call, edit in edits.items()
    }
    found = inventory(machine, machine_edits)
    assert sorted(reasons(found)) == sorted(told)
    for address, reason in told.items():
        assert reason in reasons(found)[address]
    everyone = {"0000:0d:00.0", "0000:0e:00.0", "0000:0f:00.0"}
    assert addresses(found) == sorted(everyone - told.keys())


def serial(machine: SimulatedMachine, at: int) -> str:
    return machine.state().cards[at].serial


def test_a_card_in_efsmi_alone_is_told(tmp_path: Path) -> None:
    machine = three(tmp_path)
    (machine.root / "sys/bus/pci/devices/0000:0e:00.0").unlink()
    found = inventory(machine)
    assert addresses(found) == ["0000:0d:00.0", "0000:0f:00.0"]
    assert reasons(found) == {
        "0000:0e:00.0": "efsmi lists card 0000:0e:00.0, but it is not on the PCI bus"
    }


def test_a_card_that_the_kernel_driver_did_not_take(tmp_path: Path) -> None:
    machine = three(tmp_path)
    folder = machine.root / "sys/bus/pci/devices/0000:0e:00.0/enflame"
    folder.resolve().rename(folder.resolve().with_name("gone"))
    assert "has not taken card 0000:0e:00.0" in reasons(inventory(machine))["0000:0e:00.0"]


def test_a_card_without_its_device_node(tmp_path: Path) -> None:
    machine = three(tmp_path)
    (machine.root / "dev/gcu1").unlink()
    found = inventory(machine)
    assert "gcu1 does not exist" in reasons(found)["0000:0e:00.0"]
    assert addresses(found) == ["0000:0d:00.0", "0000:0f:00.0"]


def test_addresses_that_q_does_not_print_come_from_the_list(tmp_path: Path) -> None:
    machine = three(tmp_path, efsmi=OLD_TOOL)
    found = inventory(machine, {"-q": lambda text: text.replace("PCIe Info", "Something Else")})
    assert not found.unusable
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
    ("edits", "calls"),
    [
        pytest.param({}, ["-q --json-format", ""], id="JSON tells all"),
        pytest.param(
            {"-q --json-format": without_json}, ["-q --json-format", "-q", ""], id="refused"
        ),
        pytest.param(
            {"-q --json-format": lambda _: "DEV ID 0\n"},
            ["-q --json-format", "-q", ""],
            id="answered with text",
        ),
        pytest.param(
            {"-q --json-format": without_memory}, ["-q --json-format", "-q", ""], id="incomplete"
        ),
    ],
)
def test_text_is_asked_only_where_json_does_not_do(
    tmp_path: Path, edits: dict[str, Edit], calls: list[str]
) -> None:
    machine = three(tmp_path)
    efsmi = DoctoredEfsmi(machine, edits)
    found = Machine(Sysfs(machine.root), efsmi).inventory()
    assert len(found.cards) == 3
    assert efsmi.calls == calls


@pytest.mark.parametrize("call", ["-q --json-format", "-q", ""], ids=["JSON", "text", "summary"])
def test_a_tool_that_prints_garbage_is_not_a_machine_without_cards(
    tmp_path: Path, call: str
) -> None:
    edits = {call: lambda _: "\ufffd\ufffd\x00 oops\n"}
    if call == "-q":
        edits["-q --json-format"] = without_json
    machine = three(tmp_path)
    if call == "-q --json-format":
        assert len(inventory(machine, edits).cards) == 3
    else:
        with pytest.raises(HardwareError, match="printed: \ufffd\ufffd\ufffd oops"):
            inventory(machine, edits)


def test_a_simulated_fault_of_the_tool_is_one_error(tmp_path: Path) -> None:
    machine = three(tmp_path)
    machine.set_fault("efsmi-garbage")
    with pytest.raises(HardwareError, match="shows no card"):
        inventory(machine)


def test_a_lost_card_is_not_found(tmp_path: Path) -> None:
    machine = simulated(tmp_path)
    reader = Machine(Sysfs(machine.root), DoctoredEfsmi(machine, {}))
    first = reader.inventory().cards[0]
    machine.lose_card(str(first.address))
    assert first.address not in {card.address for card in reader.inventory().cards}
    with pytest.raises(HardwareError, match="gone from the PCI bus"):
        reader.card(first)


def test_a_card_is_read_again_with_the_numbers_of_now(tmp_path: Path) -> None:
    machine = simulated(tmp_path)
    reader = Machine(Sysfs(machine.root), DoctoredEfsmi(machine, {}))
    first = reader.inventory().cards[0]
    order = [card.bdf for card in machine.state().cards]
    machine.reboot(order[::-1])
    again = reader.card(first)
    assert (again.address, again.minor) == (first.address, len(order) - 1)
    assert again.nodes[0].path == f"/dev/gcu{again.minor}"


def test_a_card_that_the_driver_lost_cannot_be_read_again(tmp_path: Path) -> None:
    machine = simulated(tmp_path)
    reader = Machine(Sysfs(machine.root), DoctoredEfsmi(machine, {}))
    first = reader.inventory().cards[0]
    machine.set_machine(driverLoaded=False)
    with pytest.raises(HardwareError, match="has not taken card"):
        reader.card(first)


def test_two_cards_share_a_switch(tmp_path: Path) -> None:
    switches = [card.pcie_switch for card in inventory(simulated(tmp_path, "s60-ecc-8")).cards]
    assert sorted(switches.count(switch) for switch in set(switches)) == [2, 2, 2, 2]


def test_a_card_below_a_port_of_its_own_has_no_switch(tmp_path: Path) -> None:
    found = inventory(simulated(tmp_path, "mixed-t20")).cards
    switches = {str(card.address): card.pcie_switch for card in found}
    assert switches["0000:03:00.0"] == switches["0000:04:00.0"] == "0000:01:00.0"
    assert switches["0000:41:00.0"] is None
    assert switches["0000:81:00.0"] is None


def test_a_missing_driver_is_an_error_and_not_an_empty_node(tmp_path: Path) -> None:
    machine = simulated(tmp_path)
    machine.set_machine(driverLoaded=False)
    with pytest.raises(HardwareError, match="not loaded"):
        inventory(machine)


def test_a_driver_of_another_name_is_loaded_when_it_holds_a_card(tmp_path: Path) -> None:
    machine = three(tmp_path)
    (machine.root / "sys/module/enflame/version").unlink()
    found = inventory(machine)
    assert [card.driver_version for card in found.cards] == ["1.5.20260710"] * 3


def test_a_node_without_cards_has_none(tmp_path: Path) -> None:
    machine = three(tmp_path)
    for card in machine.state().cards:
        machine.lose_card(card.bdf)
    efsmi = DoctoredEfsmi(machine, {})
    assert Machine(Sysfs(machine.root), efsmi).inventory() == Inventory((), {})
    assert efsmi.calls == []
