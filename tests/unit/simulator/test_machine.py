"""The machine from outside: made, made again, changed, rebooted, removed."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.errors import GcuError, InvalidValue, Refused
from dra_driver.simulator import files
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.simulator.machines import MakeMachine

FIRST, SECOND = "0000:0d:00.0", "0000:0e:00.0"


def snapshot(root: Path) -> dict[str, str]:
    """Every path below sys and dev with its content, links by their target."""
    found = {}
    for top in ("sys", "dev"):
        for path in (root / top).rglob("*"):
            if path.is_symlink():
                found[str(path.relative_to(root))] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path.relative_to(root))] = path.read_text()
    return found


def with_instance(machine: SimulatedMachine, index: int = 0) -> None:
    machine.efsmi("-i", str(index), "--drs", "on")
    machine.efsmi("-i", str(index), "--drs", "--create-instance", "0")


def test_creating_again_keeps_state_and_record(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with_instance(machine)
    instances, record = machine.instances(), machine.record()

    again = make_machine()

    assert again.instances() == instances
    assert again.record()[: len(record)] == record


def test_creating_again_puts_the_files_right(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    before = snapshot(machine.root)
    (machine.root / "dev/gcu0").unlink()
    (machine.root / "dev/gcu9").touch()
    (machine.root / "sys/module/enflame/version").write_text("")
    (machine.root / f"sys/bus/pci/devices/{FIRST}").unlink()
    machine.efsmi_path.unlink()

    make_machine(2)

    assert snapshot(machine.root) == before
    assert machine.efsmi_path.exists()


def test_what_was_done_is_told_once_but_for_the_newest(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with_instance(machine)
    done = machine.record()

    assert machine.take_record() == done
    assert machine.record() == done[-1:]

    machine.efsmi("-L")
    assert [entry.argv for entry in machine.take_record()[1:]] == [("-L",)]


def test_another_description_is_refused(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with_instance(machine)

    with pytest.raises(Refused, match="machine of another description"):
        make_machine(2)

    assert len(machine.instances()) == 1


def test_another_description_can_replace_it(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with_instance(machine)

    SimulatedMachine.create("s60-4", machine.root, plain_device_files=True, replace_other=True)

    assert len(machine.state().cards) == 4
    assert machine.instances() == ()
    assert not (machine.root / f"sys/bus/pci/devices/{FIRST}").exists()
    assert {entry.command for entry in machine.record()} == {"create"}


def test_replace_keeps_the_state_of_the_same_description(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with_instance(machine)
    described = {"cards": [{"bdf": FIRST, "model": "S60"}]}

    SimulatedMachine.create(described, machine.root, plain_device_files=True, replace_other=True)

    assert len(machine.instances()) == 1


def test_a_create_that_was_killed_before_its_end_starts_over(make_machine: MakeMachine) -> None:
    machine = make_machine()
    (machine.root / "state/description.json").unlink()

    assert make_machine(2).card(SECOND)


def test_creates_at_once_take_turns(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an update, the new agent's pod makes the machine while the old one is there."""
    make = files.write_wrapper

    def while_locked(root: Path) -> None:
        with (root / "state/lock").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        make(root)

    monkeypatch.setattr(files, "write_wrapper", while_locked)

    assert make_machine().efsmi_path.exists()


def test_a_wrong_description_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue):
        SimulatedMachine.create({"cards": [{"bdf": FIRST, "model": "X"}]}, tmp_path / "node")

    assert list(tmp_path.iterdir()) == []


def test_state_of_another_version_is_refused_and_can_be_replaced(make_machine: MakeMachine) -> None:
    machine = make_machine()
    (machine.root / "state/state.json").write_text('{"format": 99}')

    with pytest.raises(GcuError, match="another version of the simulator"):
        make_machine()

    described = {"cards": [{"bdf": FIRST, "model": "S60"}]}
    SimulatedMachine.create(described, machine.root, plain_device_files=True, replace_other=True)
    assert machine.card(FIRST)


def test_open_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(GcuError, match="make one with gcu-simulator create"):
        SimulatedMachine.open(tmp_path)


def test_a_lost_card_is_gone_and_comes_back_with_other_numbers(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    with_instance(machine)
    before = snapshot(machine.root)

    machine.lose_card(FIRST)

    assert FIRST not in machine.efsmi("-L").stdout.decode()
    assert "DEV ID 0" not in machine.efsmi("-q").stdout.decode()
    assert not any(FIRST in path or path.startswith("dev/gcu0") for path in snapshot(machine.root))

    machine.restore_card(FIRST, index=5, minor=7)

    assert (machine.root / "dev/gcu7").exists()
    assert f"{FIRST}    0-7" in machine.efsmi("-i", "5", "-L").stdout.decode()
    assert len(machine.instances(FIRST)) == 1

    machine.set_card(FIRST, index=0, minor=0)
    assert snapshot(machine.root) == before


def test_a_card_cannot_come_back_with_the_number_of_another(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    machine.lose_card(FIRST)

    with pytest.raises(InvalidValue, match="minor: 1 is also the minor of"):
        machine.restore_card(FIRST, minor=1)

    assert machine.card(FIRST).lost


@pytest.mark.parametrize("survive", [True, False])
def test_reboot(make_machine: MakeMachine, survive: bool) -> None:
    machine = make_machine(2, instancesSurviveReboot=survive)
    with_instance(machine)

    machine.reboot(order=[SECOND, FIRST])

    card = machine.card(FIRST)
    assert len(card.instances) == int(survive)
    assert card.virtualization == ("DRS" if survive else "Disable")
    assert (card.efsmi_index, card.minor) == (1, 1)


def test_reboot_makes_pending_ecc_current_with_its_other_profiles(
    make_machine: MakeMachine,
) -> None:
    machine = make_machine(instancesSurviveReboot=True)
    with_instance(machine)
    machine.set_card(FIRST, eccPending="Disable")
    assert machine.card(FIRST).ecc_current == "Enable"

    machine.reboot()

    card = machine.card(FIRST)
    assert (card.ecc_current, card.form.memory_mib, card.instances) == ("Disable", 49120, ())


def test_reboot_order_must_name_every_card(make_machine: MakeMachine) -> None:
    with pytest.raises(InvalidValue, match="name each card once"):
        make_machine(2).reboot(order=[FIRST])


def test_driver_unloaded_and_loaded_again(make_machine: MakeMachine) -> None:
    machine = make_machine()
    before = snapshot(machine.root)

    machine.set_machine(driverLoaded=False)

    left = snapshot(machine.root)
    assert f"sys/bus/pci/devices/{FIRST}" in left
    assert not any("enflame" in path or path.startswith("dev/") for path in left)
    machine.set_machine(driverLoaded=True)
    assert snapshot(machine.root) == before


@pytest.mark.parametrize(
    ("keys", "read", "value"),
    [
        ({"health": False}, "health", False),
        ({"rma": "true"}, "rma", True),
        ({"eccPending": "Disable"}, "ecc_pending", "Disable"),
        ({"uuid": "TPUB00000001"}, "uuid", "TPUB00000001"),
        ({"powerWatts": "N/A"}, "power_watts", None),
        ({"errors": {"SIP Error": "3"}}, "errors", {"SIP Error": 3}),
        ({"virtualization": "SRIOV"}, "virtualization", "SRIOV"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_keys_of_a_card(
    make_machine: MakeMachine, keys: dict[str, Any], read: str, value: object
) -> None:
    machine = make_machine()

    machine.set_card(FIRST, **keys)

    assert getattr(machine.card(FIRST), read) == value


def test_keys_of_the_machine(make_machine: MakeMachine) -> None:
    machine = make_machine()

    machine.set_machine(
        driverVersion="2.0", efsmi={"header": "DEV"}, delaysMs={"list": "3"}, placement="aligned"
    )

    state = machine.state()
    assert (state.driver_version, state.efsmi.header, state.placement) == ("2.0", "DEV", "aligned")
    assert state.delays_ms == {"list": 3}
    assert (machine.root / "sys/module/enflame/version").read_text() == "2.0\n"


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"helth": 1}, "card 0000:0d:00.0: helth: there is no such key"),
        ({"health": "perhaps"}, "health: input should be a valid boolean"),
        ({"eccCurrent": "N/A"}, "what a S60 is with ECC N/A is not known"),
        ({"virtualization": "Disable"}, "cannot change while it has DRS instances"),
    ],
)
def test_wrong_changes_change_nothing(
    make_machine: MakeMachine, keys: dict[str, Any], error: str
) -> None:
    machine = make_machine()
    with_instance(machine)
    before = machine.state()

    with pytest.raises(InvalidValue) as caught:
        machine.set_card(FIRST, **keys)

    assert error in str(caught.value)
    assert machine.state() == before


def test_unknown_card_and_fault(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with pytest.raises(GcuError, match="no card at 0000:99"):
        machine.lose_card("0000:99:00.0")
    with pytest.raises(InvalidValue, match="'boom' is none of"):
        machine.set_fault("boom")


def test_clearing_faults_by_name_or_card(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    for card in (FIRST, SECOND):
        machine.set_fault("create-fails", card=card)
        machine.set_fault("efsmi-slow", card=card)

    machine.clear_faults("create-fails", card=FIRST)
    assert len(machine.state().faults) == 3
    machine.clear_faults(card=SECOND)
    assert [(fault.fault, fault.card) for fault in machine.state().faults] == [
        ("efsmi-slow", FIRST)
    ]
    machine.clear_faults()
    assert machine.state().faults == ()


def test_destroy_leaves_what_is_not_its_own(make_machine: MakeMachine) -> None:
    machine = make_machine()
    (machine.root / "cdi").mkdir()

    machine.destroy()

    assert [path.name for path in machine.root.iterdir()] == ["cdi"]


def test_destroy_removes_its_root(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.destroy()
    assert not machine.root.exists()


def test_destroy_touches_no_folder_that_is_no_machine(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()

    with pytest.raises(GcuError, match="there is no simulated machine"):
        SimulatedMachine(tmp_path).destroy()

    assert (tmp_path / "dev").exists()
