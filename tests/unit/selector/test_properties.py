"""Whatever stands in a selector: an answer or a refusal, never anything else. And it is the same
whether the expression is given the whole device, or what it reads of it."""

from __future__ import annotations

import re
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.generated import expressions
from tests.unit.selector.expressions.table import DEVICE, DRIVER, THEMES, spelled
from tests.unit.selector.whole import answer, reads_all

EXPRESSIONS = [
    spelled(expression)
    for theme in THEMES.values()
    for part in (theme.matches, theme.differs, theme.fails)
    for expression in part
]
WORD = re.compile(r'"[^"]*"|\w+|\s+|.', re.DOTALL)
WORDS = sorted({word for expression in EXPRESSIONS for word in WORD.findall(expression)})
SELECTORS = Selectors()
INPUT = SelectorInput.of(DRIVER, DEVICE)
DEVICES = [
    SelectorInput.of(DRIVER, {"attributes": attributes, "capacity": capacity})
    for attributes, capacity in (
        ({}, {}),
        ({"x": {"int": 1}, "y": {"string": "s"}}, {"x": {"value": "1Gi"}}),
        (
            {"y": {"version": "1.0.0"}, "example.com/x": {"bool": True}},
            {"example.com/y": {"value": "2"}},
        ),
        (
            {"x": {"bool": False}, "example.com/y": {"int": 1}},
            {"x": {"value": "1"}, "y": {"value": "1"}},
        ),
    )
]


@st.composite
def garbled(draw: st.DrawFn) -> str:
    """An expression of the table, some of whose words became others."""
    words = WORD.findall(draw(st.sampled_from(EXPRESSIONS)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(words)))
        words[place : place + draw(st.integers(0, 2))] = draw(
            st.lists(st.sampled_from(WORDS), max_size=3)
        )
    return "".join(words)


@given(st.one_of(garbled(), st.text()))
def test_any_text_is_answered_or_refused(expression: str) -> None:
    with suppress(InvalidValue):
        assert SELECTORS.matches(expression, INPUT) in {True, False}


@given(expressions())
def test_what_is_not_read_changes_no_answer(expression: str) -> None:
    whole = reads_all(expression)
    for device in DEVICES:
        assert answer(SELECTORS, expression, device) == answer(SELECTORS, whole, device)
