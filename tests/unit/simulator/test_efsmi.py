"""Calls of efsmi in one process: effects, refusals, faults, delays, record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_driver.simulator.faults import HANG_SECONDS, MEANINGS
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.simulator.machines import MakeMachine

CREATE = ("-i", "0", "--drs", "--create-instance", "0")
DESTROY = ("-i", "0", "--drs", "--destroy-instance", "1")
ON = ("-i", "0", "--drs", "on")
OFF = ("-i", "0", "--drs", "off")
CARD = "0000:0d:00.0"


def ids(machine: SimulatedMachine) -> list[int]:
    return [instance.id for instance in machine.instances()]


def test_the_life_of_an_instance(make_machine: MakeMachine) -> None:
    machine = make_machine()

    assert machine.efsmi(*ON).exit_code == 0
    assert machine.efsmi(*ON).exit_code == 0
    assert machine.efsmi(*CREATE).exit_code == 0
    (instance,) = machine.instances()
    assert (instance.card, instance.id, instance.profile) == (CARD, 1, "1g.6gb")
    assert instance.uuid in machine.efsmi("-i", "0", "-L").stdout.decode()
    assert machine.efsmi(*DESTROY).exit_code == 0
    assert machine.efsmi(*OFF).exit_code == 0
    assert machine.card(CARD).virtualization == "Disable"


@pytest.mark.parametrize(
    ("argv", "exit_code", "error"),
    [
        pytest.param(["-i", "7", "-L"], 1, "GCU 7 is not found\n", id="unknown-index"),
        pytest.param(["-i", "7", "--drs", "on"], 1, "GCU 7 is not found\n", id="unknown-card"),
        pytest.param(CREATE, 1, "DRS of GCU 0 is off\n", id="create-without-drs"),
        pytest.param(DESTROY, 1, "GCU 0 has no instance 1\n", id="unknown-instance"),
        pytest.param(
            ["-i", "0", "--drs", "--list-profile"],
            1,
            "DRS of GCU 0 is off\n",
            id="profiles-without-drs",
        ),
        pytest.param(["--frob"], 2, "unknown arguments: --frob\nusage: efsmi ", id="usage"),
    ],
)
def test_refusals_change_nothing(
    make_machine: MakeMachine, argv: list[str], exit_code: int, error: str
) -> None:
    machine = make_machine()
    before = machine.state()

    answer = machine.efsmi(*argv)

    assert answer.exit_code == exit_code
    assert answer.stderr.startswith(error)
    assert machine.state() == before
    assert machine.record()[-1].exit_code == exit_code


def test_help(make_machine: MakeMachine) -> None:
    answer = make_machine().efsmi("--help")

    assert (answer.exit_code, answer.stdout[:12]) == (0, b"usage: efsmi")


def test_off_with_instances_is_refused(make_machine: MakeMachine) -> None:
    machine = make_machine(card={"instances": [{"profile": "1g.6gb"}]})

    assert machine.efsmi(*OFF).exit_code == 1
    assert ids(machine) == [1]


def test_older_tool_without_json(make_machine: MakeMachine) -> None:
    answer = make_machine(efsmi={"json": False}).efsmi("-q", "--json-format")

    assert answer.exit_code == 2


def test_older_tool_shows_instances_in_their_own_list_only(make_machine: MakeMachine) -> None:
    machine = make_machine(
        efsmi={"instanceRows": False}, card={"instances": [{"profile": "1g.6gb"}]}
    )

    assert b"1g.6gb" not in machine.efsmi("-i", "0", "-L").stdout
    assert b"1g.6gb" in machine.efsmi("-i", "0", "--drs", "--list-instance").stdout


# Fault, the call it strikes, that call's exit code, the ids of the instances after it.
FAULTS: list[tuple[str, Sequence[str], int, list[int]]] = [
    ("create-fails", CREATE, 9, [1]),
    ("create-reports-failure-but-makes", CREATE, 9, [1, 2]),
    ("create-reports-success-but-makes-nothing", CREATE, 0, [1]),
    ("create-hangs", CREATE, 0, [1, 2]),
    ("create-hangs-after-making", CREATE, 0, [1, 2]),
    ("destroy-fails", DESTROY, 9, [1]),
    ("destroy-hangs", DESTROY, 0, []),
    ("drs-on-refused", ON, 9, [1]),
    ("drs-off-refused", OFF, 9, [1]),
    ("efsmi-garbage", ["-L"], 0, [1]),
    ("efsmi-slow", ["-L"], 0, [1]),
    ("efsmi-exit", CREATE, 9, [1]),
    ("card-hangs", ["-q"], 0, [1]),
]


@pytest.mark.parametrize(("fault", "argv", "exit_code", "left"), FAULTS)
def test_faults(
    make_machine: MakeMachine, fault: str, argv: Sequence[str], exit_code: int, left: list[int]
) -> None:
    machine = make_machine(card={"instances": [{"profile": "1g.6gb"}]})
    machine.set_fault(fault, times=1, exit_code=9)

    answer = machine.efsmi(*argv, sleep=lambda _: None)

    assert answer.exit_code == exit_code
    assert ids(machine) == left
    assert not machine.state().faults


def test_every_fault_is_in_the_table_above() -> None:
    assert {row[0] for row in FAULTS} == set(MEANINGS)


def test_garbage_is_not_even_utf_8(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.set_fault("efsmi-garbage")

    with pytest.raises(UnicodeDecodeError):
        machine.efsmi("-q").stdout.decode()


def test_a_fault_without_times_stays_until_cleared(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.efsmi(*ON)
    machine.set_fault("create-fails")

    assert [machine.efsmi(*CREATE).exit_code for _ in range(3)] == [1, 1, 1]
    machine.clear_faults("create-fails")
    assert machine.efsmi(*CREATE).exit_code == 0


def test_a_fault_with_times_counts_only_calls_that_it_strikes(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.efsmi(*ON)
    machine.set_fault("create-fails", times=2)

    machine.efsmi("-L")

    assert [machine.efsmi(*CREATE).exit_code for _ in range(3)] == [1, 1, 0]


def test_a_fault_of_one_card_spares_others_and_calls_for_all(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    machine.set_fault("efsmi-exit", card=CARD)

    codes = [
        machine.efsmi(*argv).exit_code for argv in (["-i", "0", "-q"], ["-i", "1", "-q"], ["-q"])
    ]

    assert codes == [1, 0, 0]


def test_a_card_that_hangs_spares_calls_of_others_alone(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    machine.set_fault("card-hangs", card=CARD)
    taken: dict[str, int] = {}
    for argv in (["-i", "0", "-q"], ["-i", "1", "-q"], ["-q"], ["-L"], []):
        slept: list[float] = []
        machine.efsmi(*argv, sleep=slept.append)
        taken[" ".join(argv)] = len(slept)
    assert taken == {"-i 0 -q": 1, "-i 1 -q": 0, "-q": 1, "-L": 1, "": 1}


def test_a_fault_of_one_command_spares_others(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.set_fault("efsmi-garbage", command="summary")

    assert b"\xff" in machine.efsmi().stdout
    assert b"\xff" not in machine.efsmi("-L").stdout


@pytest.mark.parametrize(
    ("keys", "fault", "slept"),
    [
        pytest.param({"delaysMs": {"create-instance": 200}}, None, [0.2], id="delay"),
        pytest.param({}, {"fault": "create-hangs", "seconds": 7}, [7], id="hang"),
        pytest.param({}, {"fault": "create-hangs"}, [HANG_SECONDS], id="hang-without-a-time"),
        pytest.param(
            {}, {"fault": "create-hangs-after-making", "seconds": 7}, [7], id="hang-after-making"
        ),
        pytest.param({}, {"fault": "efsmi-slow", "seconds": 2.5}, [2.5], id="slow"),
        pytest.param({}, {"fault": "card-hangs", "card": CARD}, [HANG_SECONDS], id="card"),
    ],
)
def test_time_taken(
    make_machine: MakeMachine,
    keys: dict[str, Any],
    fault: dict[str, Any] | None,
    slept: list[float],
) -> None:
    machine = make_machine(**keys)
    machine.efsmi(*ON)
    if fault:
        machine.set_fault(**fault)
    taken: list[float] = []
    existed: list[int] = []

    def sleep(seconds: float) -> None:
        taken.append(seconds)
        existed.extend(ids(machine))

    machine.efsmi(*CREATE, sleep=sleep)

    assert taken == slept
    assert bool(existed) == (fault is not None and "after" in fault["fault"])
    assert ids(machine) == [1]


def test_a_card_lost_in_the_middle_of_a_create(make_machine: MakeMachine) -> None:
    machine = make_machine(delaysMs={"create-instance": 200})
    machine.efsmi(*ON)

    answer = machine.efsmi(*CREATE, sleep=lambda _: machine.lose_card(CARD))

    assert (answer.exit_code, answer.stderr) == (1, "GCU 0 is not found\n")
    assert ids(machine) == []


def test_without_the_driver_every_command_fails(make_machine: MakeMachine) -> None:
    machine = make_machine()
    machine.set_machine(driverLoaded=False)

    answers = [machine.efsmi(*argv) for argv in ([], ["-L"], ["-q"], ["-i", "0", "-q"], ON)]

    assert {answer.exit_code for answer in answers} == {1}


def test_record_tells_mutations_from_reads(make_machine: MakeMachine) -> None:
    machine = make_machine()
    start = len(machine.record())

    machine.efsmi("-L")
    machine.efsmi(*ON)
    machine.efsmi(*ON)
    machine.efsmi(*DESTROY)

    told = [
        (entry.command, entry.event, entry.mutates, entry.changed, entry.exit_code)
        for entry in machine.record()[start:]
    ]
    assert told == [
        ("list", "end", False, False, 0),
        ("drs-on", "begin", True, False, None),
        ("drs-on", "end", True, True, 0),
        ("drs-on", "begin", True, False, None),
        ("drs-on", "end", True, False, 0),
        ("destroy-instance", "begin", True, False, None),
        ("destroy-instance", "end", True, False, 1),
    ]
    last = machine.record()[-1]
    assert (last.argv, last.card, last.outcome) == (DESTROY, CARD, "GCU 0 has no instance 1")
