"""Functions of strings (github.com/google/cel-go v0.26.0, ext/strings.go version 2; positions and
sizes count code points)."""

from __future__ import annotations

from typing import Final

from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.library.formatting import format_string
from dra_driver.selector.library.overload import Library, Overload
from dra_driver.selector.types import BOOL, DYN, INT, STRING, list_of
from dra_driver.selector.values import kind

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)  # Go's unicode.IsSpace; Python's strip() takes four control characters more
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
_QUOTED: Final = str.maketrans(
    {
        "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
        "\\": r"\\", '"': r"\"",
    }
)  # fmt: skip


def char_at(text: str, position: int) -> str:
    """The character there; empty at the very end."""
    _within(position, len(text))
    return text[position : position + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def last_index_of_offset(text: str, part: str, offset: int) -> int:
    """The last place at or before `offset`."""
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """At most `limit` parts, the last with all that is left; any number where it is negative."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    whole = limit < 0 or limit >= len(text)
    return [*text] if whole else [*text[: limit - 1], text[limit - 1 :]]


def substring(text: str, start: int) -> str:
    _within(start, len(text))
    return text[start:]


def substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    _within(start, len(text))
    _within(end, len(text))
    return text[start:end]


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def join(parts: list[object], separator: str = "") -> str:
    words = [part for part in parts if isinstance(part, str)]
    if len(words) != len(parts):
        odd = next(part for part in parts if not isinstance(part, str))
        raise EvaluationError(f"join: a {kind(odd)} is no string")
    return separator.join(words)


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _within(position: int, end: int) -> None:
    if not 0 <= position <= end:
        raise _out_of_range(position)


def _out_of_range(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


def _replaced(text: str, old: str, new: str, limit: int = -1) -> int:
    found = text.count(old)
    return (found if limit < 0 else min(found, limit)) * len(new)


def _joined(parts: list[object], separator: str = "") -> int:
    return len(parts) * len(separator)


_TEXTS: Final = (STRING, STRING)
_PARTS: Final = list_of(STRING)

LIBRARY: Final = Library(
    functions={"strings.quote": (Overload((STRING,), STRING, quote),)},
    methods={
        "contains": (Overload(_TEXTS, BOOL, lambda text, part: part in text),),
        "startsWith": (Overload(_TEXTS, BOOL, str.startswith),),
        "endsWith": (Overload(_TEXTS, BOOL, str.endswith),),
        "charAt": (Overload((STRING, INT), STRING, char_at),),
        "indexOf": (
            Overload(_TEXTS, INT, index_of),
            Overload((*_TEXTS, INT), INT, index_of),
        ),
        "lastIndexOf": (
            Overload(_TEXTS, INT, last_index_of),
            Overload((*_TEXTS, INT), INT, last_index_of_offset),
        ),
        "lowerAscii": (Overload((STRING,), STRING, lambda text: text.translate(_LOWER)),),
        "upperAscii": (Overload((STRING,), STRING, lambda text: text.translate(_UPPER)),),
        "trim": (Overload((STRING,), STRING, lambda text: text.strip(_SPACE)),),
        "replace": (
            Overload((*_TEXTS, STRING), STRING, replace, work=_replaced),
            Overload((*_TEXTS, STRING, INT), STRING, replace, work=_replaced),
        ),
        "split": (
            Overload(_TEXTS, _PARTS, split),
            Overload((*_TEXTS, INT), _PARTS, split),
        ),
        "substring": (
            Overload((STRING, INT), STRING, substring),
            Overload((STRING, INT, INT), STRING, substring_range),
        ),
        "join": (
            Overload((_PARTS,), STRING, join, work=_joined),
            Overload((_PARTS, STRING), STRING, join, work=_joined),
        ),
        "format": (Overload((STRING, list_of(DYN)), STRING, format_string),),
    },
)
