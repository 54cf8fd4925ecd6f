"""The quick ``efsmi`` of the kill tests answers as the simulator's own does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dra_driver.simulator.machine import SimulatedMachine
from tests.cluster.waiting import wait_until
from tests.descriptors import readable
from tests.kill.quick_efsmi import QuickEfsmi

_SECONDS = 60.0
_AT_ONCE = 12


@pytest.fixture
def machine(tmp_path: Path) -> SimulatedMachine:
    return SimulatedMachine.create("s60-4", tmp_path / "machine", plain_device_files=True)


@pytest.fixture
def quick(tmp_path: Path, machine: SimulatedMachine) -> Iterator[Path]:
    server = QuickEfsmi(tmp_path)
    yield server.of(machine.root)
    server.close()


def call(tool: Path, *argv: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run([tool, *argv], check=False, capture_output=True, timeout=_SECONDS)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(("-L",), id="list"),
        pytest.param(("-i", "1", "-q"), id="query"),
        pytest.param(("-i", "0", "--drs", "--destroy-instance", "7"), id="refused"),
        pytest.param(("--no-such",), id="wrong arguments"),
    ],
)
def test_the_same_answer(quick: Path, machine: SimulatedMachine, argv: tuple[str, ...]) -> None:
    assert call(quick, *argv) == call(machine.efsmi_path, *argv)


def test_a_change_is_made_by_a_process_of_its_own(quick: Path, machine: SimulatedMachine) -> None:
    assert call(quick, "-i", "0", "--drs", "on")[0] == 0
    modes = {card.efsmi_index: card.virtualization for card in machine.state().cards}
    assert modes[0] == "DRS"
    changes = [entry for entry in machine.record() if entry.command == "drs-on"]
    made = {entry.pid for entry in machine.record() if entry.command == "create"}
    assert {entry.event for entry in changes} == {"begin", "end"}
    assert not {entry.pid for entry in changes} & made


def test_calls_at_once_get_their_own_answers(quick: Path, machine: SimulatedMachine) -> None:
    argvs = [("-i", str(at % 4), "-q") for at in range(_AT_ONCE)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda argv: call(quick, *argv), argvs))
    assert answers == [call(machine.efsmi_path, *argv) for argv in argvs]


_SERVER = """
import sys
from pathlib import Path
from tests.kill.quick_efsmi import QuickEfsmi

print(QuickEfsmi(Path(sys.argv[1])).of(Path(sys.argv[2])), flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_tests_that_are_killed(tmp_path: Path, machine: SimulatedMachine) -> None:
    """Neither the shell of a call that hangs, nor who answers it; and no later call waits."""
    [hangs] = [card.bdf for card in machine.state().cards if card.efsmi_index == 0]
    machine.set_fault("card-hangs", card=hangs)
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, tmp_path, machine.root],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as tests:
        assert tests.stdout is not None
        tool = Path(tests.stdout.readline().decode().strip())
        with subprocess.Popen([tool, "-i", "0", "-L"]) as shell:
            try:
                wait_until(lambda: bool(begun(machine)), _SECONDS, "a call that hangs")
                answering = os.pidfd_open(*begun(machine))
                tests.kill()
                assert shell.wait(_SECONDS) == 1
            finally:
                tests.kill()
                shell.kill()
    gone = readable(answering, within=_SECONDS)
    os.close(answering)
    assert gone, "it still answers"
    assert call(tool, "-L")[0] == 1


def begun(machine: SimulatedMachine) -> list[int]:
    """The processes that answer calls."""
    return [entry.pid for entry in machine.record() if entry.command == "list"]
