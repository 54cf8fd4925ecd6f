"""The command line of ``efsmi``: which arguments make which command.

Parsed by hand: a process is started for each call, and argparse would take longer to import
than everything else the call does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dra_driver.model.errors import GcuError

USAGE: Final = """\
usage: efsmi                                          summary of all cards
       efsmi [-i INDEX] -L                            list cards; with -i, their instances too
       efsmi [-i INDEX] -q [--json-format]            everything about the cards
       efsmi -i INDEX --drs on|off                    switch DRS on or off for a card
       efsmi -i INDEX --drs --list-profile            profiles of a card in DRS mode
       efsmi -i INDEX --drs --list-instance           instances of a card
       efsmi -i INDEX --drs --create-instance PROFILE_ID
       efsmi -i INDEX --drs --destroy-instance INSTANCE_ID
"""

# The names under which commands have delays and faults, and stand in the record.
COMMANDS: Final = (
    "list",
    "query",
    "summary",
    "drs-on",
    "drs-off",
    "list-profile",
    "list-instance",
    "create-instance",
    "destroy-instance",
)
_MUTATING: Final = frozenset({"drs-on", "drs-off", "create-instance", "destroy-instance"})


class UsageError(GcuError):
    """The arguments make no command."""


class ParsedCall(NamedTuple):
    """A parsed call. `number` is the profile id of a create, the instance id of a destroy."""

    name: str
    card_index: int | None = None
    number: int = 0
    json: bool = False

    @property
    def mutates(self) -> bool:
        return self.name in _MUTATING


def parse(argv: Sequence[str]) -> ParsedCall:
    """Raise UsageError for everything that the table in `USAGE` does not have."""
    words = list(argv)
    index = _take_index(words)
    match words:
        case [] if index is None:
            return ParsedCall("summary")
        case ["-L"]:
            return ParsedCall("list", index)
        case ["-q"]:
            return ParsedCall("query", index)
        case ["-q", "--json-format"] | ["--json-format", "-q"]:
            return ParsedCall("query", index, json=True)
        case ["--drs", *drs] if index is not None:
            return _drs(drs, index)
    raise UsageError(f"unknown arguments: {' '.join(argv)}")


def _take_index(words: list[str]) -> int | None:
    if "-i" not in words:
        return None
    at = words.index("-i")
    if at + 1 == len(words):
        raise UsageError("-i needs the index of a card")
    index = _number(words[at + 1], "the index of a card")
    del words[at : at + 2]
    return index


def _drs(words: list[str], index: int) -> ParsedCall:
    match words:
        case ["on" | "off" as switch]:
            return ParsedCall(f"drs-{switch}", index)
        case ["--list-profile" | "--list-instance" as what]:
            return ParsedCall(what.removeprefix("--"), index)
        case ["--create-instance", profile]:
            return ParsedCall("create-instance", index, _number(profile, "a profile id"))
        case ["--destroy-instance", instance]:
            return ParsedCall("destroy-instance", index, _number(instance, "an instance id"))
    raise UsageError(f"unknown arguments: --drs {' '.join(words)}")


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"{text!r} is not {what}")
    return int(text)
