"""README.zh.md says in Chinese what README.md says: the same blocks, links, sections and rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

CHECKOUT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"`[^`\n]+`")
# What one page says of the other.
_OTHER: Final = {"README.md", "README.zh.md"}


def blocks(text: str) -> list[str]:
    return _BLOCK.findall(text)


def links(text: str) -> list[str]:
    return [each for each in _LINK.findall(_BLOCK.sub("", text)) if each not in _OTHER]


def code(text: str) -> list[str]:
    return sorted(_CODE.findall(_BLOCK.sub("", text)))


def headings(text: str) -> list[str]:
    """Their levels."""
    return re.findall(r"^(#+) ", _BLOCK.sub("", text), flags=re.MULTILINE)


def rows(text: str) -> list[int]:
    """The columns of each row of a table."""
    return [line.count(" | ") for line in text.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("part", [blocks, links, code, headings, rows])
def test_both_have_the_same(part: Callable[[str], object]) -> None:
    english, chinese = (
        (CHECKOUT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")
    )
    assert part(english)
    assert part(chinese) == part(english)


def test_each_leads_to_the_other() -> None:
    for name in _OTHER:
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        assert _OTHER - {name} <= set(_LINK.findall(text))
