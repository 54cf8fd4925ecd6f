"""efsmi as other programs call it: an executable, many at once, killed in the middle."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.simulator.machines import MakeMachine

Start = Callable[..., subprocess.Popen[bytes]]


def call(machine: SimulatedMachine, *argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([machine.efsmi_path, *argv], capture_output=True, check=False)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a call of efsmi; none outlives the test."""
    with ExitStack() as stack:

        def started(machine: SimulatedMachine, *argv: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([machine.efsmi_path, *argv], stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield started


def create(index: int) -> tuple[str, ...]:
    return ("-i", str(index), "--drs", "--create-instance", "0")


@pytest.fixture
def drs_machine(make_machine: MakeMachine) -> SimulatedMachine:
    machine = make_machine(4, delaysMs={"create-instance": 100})
    for index in range(4):
        machine.efsmi("-i", str(index), "--drs", "on")
    return machine


def test_the_executable_answers_as_the_function(make_machine: MakeMachine) -> None:
    machine = make_machine(2)

    for argv in (["-L"], ["-q"], ["-q", "--json-format"], ["-i", "9", "-q"], ["--nonsense"]):
        by_process, by_call = call(machine, *argv), machine.efsmi(*argv)
        assert by_process.stdout == by_call.stdout
        assert by_process.stderr.decode() == by_call.stderr
        assert by_process.returncode == by_call.exit_code


def test_the_executable_needs_nothing_of_its_caller(make_machine: MakeMachine) -> None:
    """No variables, another folder, and a locale that has no ℃."""
    machine = make_machine()

    answer = subprocess.run(
        [machine.efsmi_path, "-q"], capture_output=True, check=True, cwd="/", env={"LC_ALL": "C"}
    )

    assert "35 ℃" in answer.stdout.decode()


def test_another_python_can_call_it_through_the_module(make_machine: MakeMachine) -> None:
    machine = make_machine()

    answer = subprocess.run(
        [sys.executable, "-m", "dra_driver.simulator", "efsmi", "--root", machine.root, "--", "-L"],
        capture_output=True,
        check=True,
    )

    assert answer.stdout == machine.efsmi("-L").stdout


def test_a_removed_machine_says_so(make_machine: MakeMachine, tmp_path: Path) -> None:
    machine = make_machine()
    wrapper = tmp_path / "efsmi"
    machine.efsmi_path.rename(wrapper)
    machine.destroy()

    answer = subprocess.run([wrapper, "-L"], capture_output=True, check=False)

    assert (answer.returncode, answer.stdout) == (1, b"")
    assert b"there is no simulated machine in" in answer.stderr


def test_the_tool_imports_nothing_slow(make_machine: MakeMachine) -> None:
    """The modules that a call loads, as its time is mostly theirs."""
    wrapper = make_machine().efsmi_path.read_text()
    assert " -I -S -c " in wrapper

    program = "import sys, dra_driver.simulator.efsmi; print(*sys.modules)"
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, check=True, env=environment
    )

    slow = {b"pydantic", b"yaml", b"argparse", b"dataclasses", b"inspect", b"pathlib", b"logging"}
    assert not slow & set(loaded.stdout.split())


def test_many_calls_at_once_on_one_card(drs_machine: SimulatedMachine, start: Start) -> None:
    """Eight ask for what fits six times: six get one, each its own."""
    calls = [start(drs_machine, *create(0)) for _ in range(8)]

    codes = sorted(process.wait() for process in calls)

    assert codes == [0] * 6 + [1] * 2
    made = drs_machine.instances()
    assert sorted(one.id for one in made) == [1, 2, 3, 4, 5, 6]
    assert len({one.uuid for one in made}) == 6
    assert sorted(slot for one in made for slot in one.slots) == list(range(6))


def test_cards_go_on_while_one_is_busy(drs_machine: SimulatedMachine, start: Start) -> None:
    """A create that hangs on one card delays neither another card nor a read."""
    drs_machine.set_fault("create-hangs", card="0000:0d:00.0")
    hanging = start(drs_machine, *create(0))
    wait_for_begin(drs_machine, hanging)

    assert call(drs_machine, *create(1)).returncode == 0
    assert call(drs_machine, "-q").returncode == 0

    assert hanging.poll() is None
    assert [one.card for one in drs_machine.instances()] == ["0000:0e:00.0"]


def test_a_killed_create_made_nothing_and_leaves_its_card_free(
    drs_machine: SimulatedMachine, start: Start
) -> None:
    """Until then another call for the card waits, and goes on by itself."""
    drs_machine.set_fault("create-hangs", times=1)
    hanging = start(drs_machine, *create(0))
    wait_for_begin(drs_machine, hanging)
    waiting = start(drs_machine, *create(0))
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=0.5)

    hanging.kill()
    hanging.wait()

    assert waiting.wait() == 0
    assert [one.id for one in drs_machine.instances()] == [1]


def test_kills_at_any_moment_tear_nothing(drs_machine: SimulatedMachine, start: Start) -> None:
    """After each kill the state is whole, and the record accounts for every instance."""
    moments = random.Random(20260101)
    for round_number in range(24):
        process = start(drs_machine, *create(round_number % 4))
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=moments.uniform(0.0, 0.25))
        process.kill()
        process.wait()
        raw = (drs_machine.root / "state/state.json").read_text()
        assert json.loads(raw)["format"] == 1
        told = [
            entry.outcome
            for entry in drs_machine.record()
            if entry.command == "create-instance" and entry.changed
        ]
        assert len(told) == len(drs_machine.instances())


def wait_for_begin(machine: SimulatedMachine, process: subprocess.Popen[bytes]) -> None:
    """Return once the call of that process stands in the record; it must not end meanwhile."""
    while not any(entry.pid == process.pid for entry in machine.record()):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.02)
