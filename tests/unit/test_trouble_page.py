"""docs/user/trouble.md quotes messages as the programs and the chart write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[2]
PAGE: Final = (CHECKOUT / "docs/user/trouble.md").read_text(encoding="utf-8")
_ROW: Final = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)
_QUOTED: Final = re.compile(r"`([^`]+)`")
_HOLE: Final = "\0"


def quoted() -> Iterator[str]:
    """The messages of the tables whose first column is headed so."""
    for table in re.split(r"\n\n", PAGE):
        if table.startswith("| message |"):
            for cell in _ROW.findall(table)[1:]:
                yield from _QUOTED.findall(cell)


MESSAGES: Final = tuple(quoted())


def written() -> str:
    """All strings of the programs, with holes for what is formatted, and the chart's templates."""
    folders = ("dra_driver", "controller")
    sources = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    strings = [text for path in sources for text in _strings(path)]
    templates = [
        re.sub(r'[" ]+\+?\s+"?', " ", path.read_text(encoding="utf-8"))
        for path in (CHECKOUT / "charts/gcu-dra-driver/templates").rglob("*.*")
    ]
    return "\n".join([*strings, *templates])


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.JoinedStr(values=values):
                yield "".join(
                    str(each.value) if isinstance(each, ast.Constant) else _HOLE for each in values
                )
            case ast.Constant(value=str(text)):
                yield text


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 30


def test_messages_are_written_so() -> None:
    strings = written()

    def is_written(message: str) -> bool:
        parts = [re.escape(part) for part in message.split("…")]
        return re.search(r"[^\n]{0,300}".join(parts), strings) is not None

    assert [message for message in MESSAGES if not is_written(message)] == []
