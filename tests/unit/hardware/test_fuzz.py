"""Whatever a tool prints, the parsers give an answer or a HardwareError, and quickly."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.hardware.drs.rows import (
    parse_instances,
    parse_older_instances,
    parse_profiles,
    parse_summary_instances,
)
from dra_driver.hardware.efsmi.field_reader import last_line, shown
from dra_driver.hardware.efsmi.join import by_address, located, mode_of
from dra_driver.hardware.efsmi.listing import parse_list
from dra_driver.hardware.efsmi.query import parse_query, parse_query_json
from dra_driver.hardware.efsmi.summary import parse_summary
from dra_driver.model.errors import HardwareError
from tests.unit.efsmi_outputs import BANNER, INSTANCES, LIST, OLD_QUERY, QUERY, SUMMARY
from tests.unit.hardware.drs.test_rows import LISTING, PROFILES

Parse = Callable[[str], object]

PARSERS: dict[str, Parse] = {
    parse.__name__: parse
    for parse in (parse_list, parse_query, parse_query_json, parse_summary, last_line)
} | {
    parse.__name__: partial(parse, index=0)
    for parse in (parse_instances, parse_older_instances, parse_summary_instances, parse_profiles)
}
JSON = '{"devices": [{"id": 0}]}'
REAL = [BANNER + LIST, QUERY, OLD_QUERY, SUMMARY + INSTANCES, JSON, LISTING, PROFILES]

# Pieces of real outputs in any order, with noise between: near misses, which noise alone is not.
lines = st.sampled_from([line for text in REAL for line in text.splitlines()])
noise = st.text(max_size=20) | st.binary(max_size=20).map(lambda b: b.decode("utf-8", "replace"))
words = st.sampled_from(["0", "1", "|", "1g.6gb", "3g.20gb", "6860MiB", "x-1", "℃", "\0", " "])
fields = st.lists(words).map(" ".join)
jumbled = st.lists(lines | fields | noise, max_size=30).map("\n".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A real output with a piece cut out and something else put there."""
    text = draw(st.sampled_from(REAL))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 40)))
    return text[:start] + draw(noise) + text[end:]


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
@given(text=jumbled | damaged() | noise)
def test_any_text_has_an_answer_or_a_hardware_error(parse: Parse, text: str) -> None:
    with suppress(HardwareError):
        parse(text)


@given(queries=jumbled | damaged(), listed=jumbled | damaged(), summary=jumbled | damaged())
def test_any_outputs_can_be_joined(queries: str, listed: str, summary: str) -> None:
    with suppress(HardwareError):
        found = parse_list(listed)
        joined = by_address([located(card, found) for card in parse_query(queries)])
        rows = parse_summary(summary)
        for address, card in joined.cards.items():
            assert card.address == address
            assert address not in joined.failures
            with suppress(HardwareError):
                assert mode_of(address, card.index, rows) in {row.mode for row in rows}


@given(noise)
def test_what_is_shown_is_one_short_printable_line(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text * 100)) <= 120


LONG = 200_000


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("|" * LONG, id="bars"),
        pytest.param("| 0 x" + "|" * LONG, id="a cell and bars"),
        pytest.param("0 " * LONG, id="fields"),
        pytest.param(" " * LONG + "x", id="blanks"),
        pytest.param("0000:0d:00." * LONG, id="almost addresses"),
        pytest.param("9" * LONG, id="digits"),
        pytest.param("DEV ID 0\n" * (LONG // 20), id="blocks"),
        pytest.param("DEV ID 0\n" + "a\n" * LONG, id="headings"),
        pytest.param("DEV ID 0\n" + "\n".join(" " * n for n in range(500)) + "a", id="steps"),
        pytest.param('{"devices":' + '{"a":' * LONG, id="depth"),
        pytest.param("| GCU Virt |\n" + "| 0 x | 0d:00.0 |\n| Disable |\n" * 5000, id="cells"),
    ],
)
def test_no_text_takes_long(parse: Parse, text: str) -> None:
    start = time.process_time()  # other programs do not lengthen it
    with suppress(HardwareError):
        parse(text)
    assert time.process_time() - start < 20, "a fraction of a second is usual"


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_query, "DEV ID 0\n" * 513),
        (parse_query_json, f'{{"devices": [{", ".join(["""{"id": 0}"""] * 513)}]}}'),
        (parse_list, "0 a 0000:0d:00.0 b\n" * 513),
        (PARSERS["parse_instances"], "0 1g.6gb 1 u\n" * 513),
        (PARSERS["parse_older_instances"], "0 1g.6gb 0 1 0:1\n" * 513),
        (PARSERS["parse_summary_instances"], "0 1g.6gb 1\n" * 513),
    ],
    ids=["text", "json", "list", "instances", "older instances", "summary's instances"],
)
def test_more_rows_than_any_machine_has_are_refused(parse: Parse, text: str) -> None:
    """Cards and instances are compared each with each: 2 MiB of them would take minutes."""
    with pytest.raises(HardwareError, match="more than 512"):
        parse(text)
