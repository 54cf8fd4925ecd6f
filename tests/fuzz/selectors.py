"""CEL expressions, which anybody may write into a claim."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.fuzz.engine import Subject
from tests.fuzz.hostile import Damaged
from tests.unit.selector.expressions.table import DEVICE, DRIVER, THEMES, spelled

_EXPRESSIONS: Final = [
    spelled(expression).encode()
    for theme in THEMES.values()
    for part in (theme.matches, theme.differs, theme.fails)
    for expression in part
]
_INPUT: Final = SelectorInput.of(DRIVER, DEVICE)


def _matches(data: bytes, _: Path) -> object:
    # A new one each time: a remembered answer would have cost nothing.
    return Selectors().matches(data.decode("utf-8", "replace"), _INPUT)


SUBJECTS: Final = (Subject("selector", Damaged(_EXPRESSIONS), _matches),)
