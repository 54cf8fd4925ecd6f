"""State and record on disk, cut off at any point."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dra_driver.simulator import record, state
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.simulator.machines import MakeMachine

ON = ("-i", "0", "--drs", "on")


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


def kill(*_: object) -> None:
    raise Killed


def test_state_survives_json(make_machine: MakeMachine) -> None:
    machine = make_machine(
        2, card={"instances": [{"profile": "3g.20gb"}]}, faults=[{"fault": "create-fails"}]
    ).state()

    assert state.from_json(json.loads(json.dumps(state.to_json(machine)))) == machine


def test_a_kill_between_state_and_record_loses_no_record(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine()
    with monkeypatch.context() as cut:
        writes: list[record.RecordLine] = []

        def second_is_killed(_: record.CallRecord, entry: record.RecordLine) -> None:
            # The first is the call's begin.
            writes.append(entry)
            if len(writes) == 2:
                raise Killed

        cut.setattr(record.CallRecord, "append", second_is_killed)
        with pytest.raises(Killed):
            machine.efsmi(*ON)
    assert machine.card("0000:0d:00.0").virtualization == "DRS"

    told = machine.record()

    assert [entry.outcome for entry in told if entry.changed] == ["created", "DRS is on"]
    assert machine.record() == told


def test_a_kill_before_the_state_is_renamed_changes_nothing(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine()
    before = machine.state()
    with monkeypatch.context() as cut:
        cut.setattr(os, "replace", kill)
        with pytest.raises(Killed):
            machine.efsmi(*ON)

    assert machine.state() == before
    assert machine.efsmi(*ON).exit_code == 0


def test_a_torn_line_of_the_record_is_passed_over(make_machine: MakeMachine) -> None:
    machine = make_machine()
    whole = machine.record()
    with (machine.root / "state/record.jsonl").open("a") as file:
        file.write('{"sequence": 5, "ti\n')

    assert machine.record() == whole


def test_the_record_is_bounded(make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "LIMIT_BYTES", 2000)
    machine = make_machine()

    for _ in range(40):
        machine.efsmi("-L")

    told = machine.record()
    assert 5 < len(told) < 30
    assert told[-1].command == "list"
    assert [entry.time for entry in told] == sorted(entry.time for entry in told)


def test_an_unchanged_machine_keeps_its_sequence(make_machine: MakeMachine) -> None:
    machine: SimulatedMachine = make_machine()
    machine.efsmi(*ON)
    sequence = machine.state().sequence

    machine.efsmi(*ON)
    machine.efsmi("-q")

    assert machine.state().sequence == sequence
    assert [entry.sequence for entry in machine.record()][-2:] == [sequence, sequence]


def test_nothing_but_the_known_files(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.efsmi(*ON)

    names = {path.name for path in Path(machine.root, "state").iterdir()}

    assert names == {
        "lock",
        "card-0000:0d:00.0.lock",
        "state.json",
        "description.json",
        "record.jsonl",
    }
