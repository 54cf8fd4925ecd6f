"""The machine from outside: made, made again, described anew, removed."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from dra_driver.model.errors import GcuError, InvalidValue, Refused
from dra_driver.simulator import files
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.simulator.machines import MakeMachine, snapshot, with_instance

FIRST, SECOND = "0000:0d:00.0", "0000:0e:00.0"


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
