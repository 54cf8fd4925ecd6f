"""The command line gcu-simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dra_driver.simulator.description.load import shipped_machines
from dra_driver.simulator.machine import SimulatedMachine
from dra_driver.simulator.main import run

FIRST = "0000:03:00.0"


@pytest.fixture
def root(tmp_path: Path) -> str:
    root = str(tmp_path / "node")
    arguments = ["--machine", "s60-4", "--root", root, "--plain-device-files"]
    assert run(["create", *arguments]) == 0
    return root


def test_create_says_what_it_made(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["create", "--machine", "s60-4", "--root", root, "--plain-device-files"])

    assert capsys.readouterr().out.splitlines()[-1] == (
        f"4 cards below {root}, device nodes are plain files; efsmi is {root}/bin/efsmi"
    )


def test_create_over_another_machine(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["create", "--machine", "s60-ecc-8", "--root", root, "--plain-device-files"]

    assert run(arguments) == 1
    assert "gcu-simulator: " in capsys.readouterr().err
    assert run([*arguments, "--replace"]) == 0


@pytest.mark.parametrize("name", shipped_machines())
def test_show_of_every_shipped_machine(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["create", "--machine", name, "--root", str(tmp_path / name), "--plain-device-files"])
    capsys.readouterr()

    assert run(["show", "--root", str(tmp_path / name)]) == 0

    lines = capsys.readouterr().out.splitlines()
    cards = SimulatedMachine.open(tmp_path / name).state().cards
    assert [line.split()[0] for line in lines[3 : 3 + len(cards)]] == [card.bdf for card in cards]


def test_show_tells_condition_instances_faults_and_assumptions(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["efsmi", "--root", root, "--", "-i", "3", "--drs", "on"])
    run(["efsmi", "--root", root, "--", "-i", "3", "--drs", "--create-instance", "1"])
    run(["set", "--root", root, "--card", FIRST, "health=false", "lost=true"])
    run(["fault", "--root", root, "create-fails", "--times", "2"])
    capsys.readouterr()

    run(["show", "--root", root])

    text = capsys.readouterr().out
    assert "DRS      lost, health false  1:3g.23gb" in text
    assert "profile table s60-no-ecc is partly assumed" in text
    assert "fault create-fails on all cards, 2 times" in text


def test_set_and_fault_and_reboot(root: str) -> None:
    machine = SimulatedMachine.open(Path(root))
    run(["set", "--root", root, "efsmi.header=DEV", "delaysMs.create-instance=0"])
    run(["set", "--root", root, "--card", FIRST, "errors.SIP Error=4"])
    run(["fault", "--root", root, "efsmi-exit", "--command", "summary", "--exit-code", "7"])

    assert machine.efsmi("-L").stdout.decode().splitlines()[5].startswith("DEV")
    assert machine.card(FIRST).errors == {"SIP Error": 4}
    assert machine.efsmi().exit_code == 7

    run(["fault", "--root", root, "--clear"])
    assert machine.efsmi().exit_code == 0

    addresses = [card.bdf for card in machine.state().cards]
    run(["reboot", "--root", root, "--order", ",".join(reversed(addresses))])
    assert machine.card(FIRST).minor == 3


def test_record_prints_json_lines(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["efsmi", "--root", root, "--", "-L"])
    run(["set", "--root", root, "--card", FIRST, "health=false"])
    capsys.readouterr()

    run(["record", "--root", root])
    everything = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    run(["record", "--root", root, "--changes"])
    changes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert {"create", "list", "set"} == {entry["command"] for entry in everything}
    assert changes == [entry for entry in everything if entry["changed"]]
    assert [entry["command"] for entry in changes] == ["create", "set"]


def test_destroy(root: str) -> None:
    assert run(["destroy", "--root", root]) == 0
    assert not Path(root).exists()
    assert run(["show", "--root", root]) == 1


def test_machines(capsys: pytest.CaptureFixture[str]) -> None:
    run(["machines"])
    assert capsys.readouterr().out.split() == list(shipped_machines())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["set", "health"], "'health' is not KEY=VALUE"),
        (["set", "helth=1"], "the machine: helth: there is no such key"),
        (["fault"], "no fault is named; name one of create-fails,"),
        (["fault", "boom"], "the fault: fault: 'boom' is none of"),
        (["set", "--card", "0000:99:00.0", "rma=1"], "no card at 0000:99:00.0"),
    ],
)
def test_errors_are_told_without_a_traceback(
    root: str, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *rest = arguments

    assert run([command, "--root", root, *rest]) == 1
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    ["create", "show", "record", "set", "fault", "reboot", "destroy", "machines", "efsmi"],
)
def test_help_of_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run([command, "--help"])

    assert caught.value.code == 0
    assert f"usage: gcu-simulator {command}" in capsys.readouterr().out
