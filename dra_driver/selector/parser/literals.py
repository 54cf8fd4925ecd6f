"""What a literal of CEL stands for.

Source: github.com/google/cel-go v0.26.0, parser/unescape.go and parser/parser.go.
"""

from __future__ import annotations

import math
import re
from typing import Final

from dra_driver.selector.errors import RefusedError
from dra_driver.selector.values import INT64_MAX, INT64_MIN, UINT64_MAX, Uint, Value

_PARTS: Final = re.compile(
    r"""(?P<prefix>[rRbB]*)(?P<quote>\"{3}|'{3}|"|')(?P<text>.*)(?P=quote)""", re.DOTALL
)
_ESCAPE: Final = re.compile(
    r"""\\(?:(?P<plain>[abfnrtv\\'"`?])|(?P<hex>[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
    r"""|(?P<octal>[0-3][0-7]{2})|(?P<other>.?))""",
    re.DOTALL,
)
_MOST_DIGITS: Final = 1000
_PLAIN: Final = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))


def number(text: str) -> int | float | Uint:
    """The value of an int, uint or double literal. Raises RefusedError out of its range."""
    unsigned = text[-1] in "uU"
    digits = text.rstrip("uU")
    low, high = (0, UINT64_MAX) if unsigned else (INT64_MIN, INT64_MAX)
    if "x" in digits:
        value = int(digits, 16)
    elif not digits.lstrip("-").isdigit():
        return _double(text)
    else:
        # Python reads no decimal number of more than some thousand digits.
        value = int(digits) if len(digits) <= _MOST_DIGITS else high + 1
    if not low <= value <= high or (unsigned and text[0] == "-"):
        raise RefusedError(f"the number {text} is out of range")
    return Uint(value) if unsigned else value


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value) or text.endswith("."):
        raise RefusedError(f"{text} is not a number")
    return value


def quoted(text: str) -> Value:
    """The str or bytes that a quoted literal stands for. Raises RefusedError where it has an
    escape that CEL does not know."""
    parts = _PARTS.fullmatch(text)
    assert parts is not None, text
    prefix = parts["prefix"].lower()
    body = parts["text"].replace("\r\n", "\n").replace("\r", "\n")
    if "b" in prefix:
        return body.encode() if "r" in prefix else _bytes(body)
    return body if "r" in prefix else _ESCAPE.sub(_character, body)


def _character(escape: re.Match[str]) -> str:
    if escape["plain"]:
        return _PLAIN[escape["plain"]]
    if escape["other"] is not None:
        raise RefusedError(f"the escape {escape[0]} is not known in a string")
    code = int(escape["hex"][1:], 16) if escape["hex"] else int(escape["octal"], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise RefusedError(f"the escape {escape[0]} is not a code point")
    return chr(code)


def _bytes(body: str) -> bytes:
    found = bytearray()
    end = 0
    for escape in _ESCAPE.finditer(body):
        found += body[end : escape.start()].encode()
        end = escape.end()
        if (escape["hex"] or "")[:1] in ("u", "U"):
            raise RefusedError(f"the escape {escape[0]} is not known in bytes")
        found.append(ord(_character(escape)))
    return bytes(found + body[end:].encode())
