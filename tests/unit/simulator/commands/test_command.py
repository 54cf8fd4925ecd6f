"""The arguments of efsmi."""

from __future__ import annotations

import pytest

from dra_driver.simulator.commands.command import ParsedCall, UsageError, parse


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", ParsedCall("summary")),
        ("-L", ParsedCall("list")),
        ("-i 3 -L", ParsedCall("list", 3)),
        ("-L -i 3", ParsedCall("list", 3)),
        ("-q", ParsedCall("query")),
        ("-i 0 -q", ParsedCall("query", 0)),
        ("-q --json-format", ParsedCall("query", json=True)),
        ("-i 1 -q --json-format", ParsedCall("query", 1, json=True)),
        ("-i 1 --drs on", ParsedCall("drs-on", 1)),
        ("-i 1 --drs off", ParsedCall("drs-off", 1)),
        ("-i 1 --drs --list-profile", ParsedCall("list-profile", 1)),
        ("-i 1 --drs --list-instance", ParsedCall("list-instance", 1)),
        ("-i 1 --drs --create-instance 2", ParsedCall("create-instance", 1, 2)),
        ("-i 1 --drs --destroy-instance 7", ParsedCall("destroy-instance", 1, 7)),
    ],
)
def test_commands(line: str, command: ParsedCall) -> None:
    assert parse(line.split()) == command


@pytest.mark.parametrize(
    "line",
    [
        "-x",
        "-L -q",
        "-i",
        "-i one -L",
        "-i -1 -L",
        "-i 3",
        "--drs on",
        "--drs --list-profile",
        "-i 1 --drs",
        "-i 1 --drs maybe",
        "-i 1 --drs --create-instance",
        "-i 1 --drs --create-instance 1g.6gb",
        "-i 1 --drs --destroy-instance 1 2",
    ],
)
def test_everything_else_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        parse(line.split())
