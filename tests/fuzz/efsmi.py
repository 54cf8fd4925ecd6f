"""What ``efsmi`` prints, command by command, as recorded and as the simulator prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from dra_driver.hardware.drs.rows import (
    parse_instances,
    parse_older_instances,
    parse_profiles,
    parse_summary_instances,
)
from dra_driver.hardware.efsmi.field_reader import last_line
from dra_driver.hardware.efsmi.join import by_address, located, mode_of
from dra_driver.hardware.efsmi.listing import parse_list
from dra_driver.hardware.efsmi.query import parse_query, parse_query_json
from dra_driver.hardware.efsmi.summary import parse_summary
from dra_driver.model.errors import HardwareError
from tests.fuzz.engine import Subject
from tests.fuzz.hostile import Damaged
from tests.unit import efsmi_outputs as outputs
from tests.unit.memory_efsmi import MemoryEfsmi

_CARD: Final = "0000:0d:00.0"


def _printed(*calls: tuple[str, ...]) -> list[str]:
    """What the simulated tool prints for the last of these calls."""
    efsmi = MemoryEfsmi.of(_CARD, "0000:0e:00.0")
    return [efsmi.run(*arguments) for arguments in calls][-1:]


_ON: Final = ("-i", "1", "--drs", "on")
_MADE: Final = (_ON, ("-i", "1", "--drs", "--create-instance", "0"))
_LIST: Final = [outputs.BANNER + outputs.LIST, outputs.LIST, *_printed(("-L",))]
_INSTANCES: Final = [outputs.LIST + outputs.INSTANCE_ROW, *_printed(*_MADE, ("-i", "1", "-L"))]
_OLDER: Final = _printed(*_MADE, ("-i", "1", "--drs", "--list-instance"))
_PROFILES: Final = _printed(_ON, ("-i", "1", "--drs", "--list-profile"))
_QUERY: Final = [outputs.QUERY, outputs.OLD_QUERY, *_printed(("-q",))]
_QUERY_JSON: Final = _printed(("-q", "--json-format"))
_SUMMARY: Final = [
    outputs.SUMMARY + outputs.INSTANCES,
    outputs.OLD_SUMMARY,
    outputs.NEW_SUMMARY,
    *_printed(*_MADE, ()),
]
_SPLIT: Final = "\f"


def _of(text: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    """A parser of text, which comes decoded as `dra_driver.hardware.efsmi.runner` decodes it."""
    return lambda data, _: text(data.decode("utf-8", "replace"))


def _shown(text: str) -> object:
    line = last_line(text)
    assert line.isprintable(), line
    assert len(line) <= 120, len(line)
    return line


def _joined(text: str) -> object:
    """An inventory's worth of outputs."""
    query, listing, summary = [*text.split(_SPLIT), "", ""][:3]
    found = parse_list(listing)
    joined = by_address([located(card, found) for card in parse_query(query)])
    rows = parse_summary(summary)
    for address, card in joined.cards.items():
        assert card.address == address, card
        with suppress(HardwareError):
            assert mode_of(address, card.index, rows) in {row.mode for row in rows}
    return joined


def _subject(name: str, parse: Callable[[str], object], recorded: Iterable[str]) -> Subject:
    make = Damaged([text.encode() for text in recorded])
    return Subject(f"efsmi-{name}", make, _of(parse))


SUBJECTS: Final = (
    _subject("list", parse_list, _LIST),
    _subject("query", parse_query, _QUERY),
    _subject("query-json", parse_query_json, _QUERY_JSON),
    _subject("summary", parse_summary, _SUMMARY),
    _subject("instances", lambda text: parse_instances(text, 1), _INSTANCES),
    _subject("older-instances", lambda text: parse_older_instances(text, 1), _OLDER),
    _subject("summary-instances", lambda text: parse_summary_instances(text, 1), _SUMMARY),
    _subject("profiles", lambda text: parse_profiles(text, 1), _PROFILES),
    _subject("inventory", _joined, [_SPLIT.join((_QUERY[0], _LIST[0], _SUMMARY[0]))]),
    _subject("message", _shown, [*_LIST, *_SUMMARY]),
)
