"""Whatever stands in a selector: an answer or a refusal, never anything else."""

from __future__ import annotations

import re
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.table import DEVICE, DRIVER, THEMES, spelled

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
