"""The join of sysfs and efsmi, on simulated machines, whatever version of the tool answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dra_driver.hardware.efsmi.runner import Efsmi
from dra_driver.hardware.machine import HardwareScan
from dra_driver.model.card import Ecc, Virtualization
from dra_driver.model.effects import Effects
from dra_driver.model.errors import HardwareError
from tests.unit.hardware.doctored import (
    OLD_TOOL,
    DoctoredEfsmi,
    addresses,
    inventory,
    reader,
    reasons,
    simulated,
    three,
    unbind,
)


@pytest.mark.parametrize("name", ["s60-ecc-8", "s60-ecc-8-nested", "s60-4", "mixed-t20"])
def test_shipped_machines_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    machine = simulated(tmp_path, name)
    # Once by a process of its own, as on a node.
    efsmi = Efsmi(machine.efsmi_path, timeout=20, effects=Effects())
    found = reader(machine, efsmi).inventory()
    assert not found.failures
    assert addresses(found) == [card.bdf for card in machine.state().cards]
    for card in found.cards:
        truth = machine.card(str(card.address))
        assert (card.index, card.minor) == (truth.efsmi_index, truth.minor)
        assert card.index != card.minor
        assert (card.model, card.uuid) == (truth.model, truth.uuid)
        assert card.memory_mib == truth.form.memory_mib
        assert card.driver_version == machine.state().driver_version
        has_ecc = truth.ecc_current == "Enable"
        ecc = None if truth.ecc_current == "N/A" else Ecc(current=has_ecc, pending=has_ecc)
        assert card.ecc == ecc
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
    assert not found.failures
    told = [(str(c.address), c.index, c.minor, c.model, c.memory_mib) for c in found.cards]
    assert told == [
        ("0000:0d:00.0", 2, 0, "S60", 42976),
        ("0000:0e:00.0", 1, 1, "S60", 42976),
        ("0000:0f:00.0", 0, 2, "S60", 42976),
    ]


@pytest.mark.parametrize("tool", [{}, {"json": False}], ids=["JSON", "text"])
@pytest.mark.parametrize(
    ("printed", "address"),
    [
        pytest.param("10000:0d:00.0", "10000:0d:00.0", id="five digits, as below Intel's VMD"),
        pytest.param("00000001:0d:00.0", "0001:0d:00.0", id="eight digits are four in sysfs"),
    ],
)
def test_another_domain(tmp_path: Path, tool: dict[str, Any], printed: str, address: str) -> None:
    """The summary prints two digits of each."""
    cards = [{"bdf": bdf, "model": "S60"} for bdf in (printed, "0000:0d:00.0")]
    found = inventory(simulated(tmp_path, {"cards": cards, "efsmi": tool}))
    assert not found.failures
    assert addresses(found) == ["0000:0d:00.0", address]
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


def test_a_card_in_efsmi_alone_is_told(tmp_path: Path) -> None:
    machine = three(tmp_path)
    (machine.root / "sys/bus/pci/devices/0000:0e:00.0").unlink()
    found = inventory(machine)
    assert addresses(found) == ["0000:0d:00.0", "0000:0f:00.0"]
    assert reasons(found) == {
        "0000:0e:00.0": "efsmi lists card 0000:0e:00.0, but it is not on the PCI bus"
    }


def test_cards_that_cannot_be_published_cost_no_other(tmp_path: Path) -> None:
    """The kernel driver did not take one of them; the other has no device node."""
    machine = three(tmp_path)
    unbind(machine, "0000:0e:00.0")
    (machine.root / "dev/gcu2").unlink()
    found = inventory(machine)
    assert addresses(found) == ["0000:0d:00.0"]
    assert "is not bound to card 0000:0e:00.0" in reasons(found)["0000:0e:00.0"]
    assert "gcu2 does not exist" in reasons(found)["0000:0f:00.0"]


def test_a_lost_card_is_not_found(tmp_path: Path) -> None:
    machine = simulated(tmp_path)
    view = reader(machine)
    first, second, *_ = view.inventory().cards
    unbind(machine, str(second.address))
    with pytest.raises(HardwareError, match="is not bound to card"):
        view.card(second)
    machine.lose_card(str(first.address))
    assert first.address not in {card.address for card in view.inventory().cards}
    with pytest.raises(HardwareError, match="gone from the PCI bus"):
        view.card(first)


def test_a_card_is_read_again_with_the_numbers_of_now(tmp_path: Path) -> None:
    machine = simulated(tmp_path)
    view = reader(machine)
    first = view.inventory().cards[0]
    order = [card.bdf for card in machine.state().cards]
    machine.reboot(order[::-1])
    again = view.card(first)
    assert (again.address, again.minor) == (first.address, len(order) - 1)
    assert again.nodes[0].path == f"/dev/gcu{again.minor}"


def test_a_card_that_is_as_it_was_is_read_without_listing_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``/dev`` has hundreds of names, and each is a turn of the interpreter's lock."""
    machine = simulated(tmp_path)
    os.utime(machine.root / "dev", (0, 0))
    view = reader(machine)
    first = view.inventory().cards[0]
    monkeypatch.delattr(os, "scandir")
    assert view.card(first) == first


@pytest.mark.parametrize("made_at", [0.0, None], ids=["long ago", "within a tick"])
def test_a_node_that_udev_makes_after_the_inventory_is_found(
    tmp_path: Path, made_at: float | None
) -> None:
    machine = simulated(tmp_path)
    dev, control = machine.root / "dev", machine.root / "dev/gcuctl"
    control.unlink()
    before = dev.stat()
    if made_at is not None:
        os.utime(dev, (made_at, made_at))
    view = reader(machine)
    first = view.inventory().cards[0]
    control.touch()
    if made_at is None:
        os.utime(dev, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "/dev/gcuctl" in {node.path for node in view.card(first).nodes}


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
    assert reader(machine, efsmi).inventory() == HardwareScan((), {})
    assert efsmi.calls == []
