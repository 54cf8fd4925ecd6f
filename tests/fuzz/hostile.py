"""Values that have broken parsers before, and recorded inputs that are damaged with them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

# What a field is replaced with: paths, control characters, signs that only look like others,
# what ends a line for some, numbers at and beyond limits, what a shell would act on.
STRINGS: Final[tuple[str, ...]] = (
    *("", " ", ".", "..", "/", "../../../../tmp/planted", "/etc/passwd", "a/b", "a\\b", "~"),
    *("\0", "a\0b", "\n", "a\r\nb", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\t"),
    *("\u0661", "\u00b2", "\u212a", "\u0130", "\uff10", "é", "😀" * 4, "\ud800", "\udfff\udbff"),
    *(
        "-1",
        "0",
        "1_000",
        "+1",
        "0x10",
        "1e999",
        "9" * 20,
        "9" * 5000,
        "0" * 300,
        "NaN",
        "Infinity",
    ),
    *("$(touch planted)", "`id`", "; true", "| true", "%s%n", "{0}", "--help", "-", "*", "[a-"),
    *("A" * 64, "A" * 254, "a." * 200, "-" * 100, "x" * 5000, "|" * 60, ":" * 60, " " * 500),
    *(
        "N/A",
        "true",
        "null",
        "0000:0d:00.0",
        "0000:0D:00.0 ",
        "1g.6gb",
        "uid-1",
        "whole-0000-0d-00-0",
    ),
)
_VALUES: Final[tuple[Any, ...]] = (
    *STRINGS,
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63), 10**300, 0.5, -0.0, 1e308),
    *(float("inf"), float("-inf"), float("nan"), [], {}, [[]], [None], {"": None}, {"a": {}}),
)
# As text, since what is put into a document is altered there.
_SCALARS: Final = tuple(map(json.dumps, _VALUES))
_BYTES: Final = tuple(text.encode("utf-8", "surrogatepass") for text in STRINGS)
_WORD: Final = re.compile(rb"[^\s|:,\"{}\[\]]+")
_MUCH: Final = 5_000  # times that a piece is repeated, seldom

Make = Callable[[Random], bytes]


class Damaged:
    """Recorded inputs with one to five wounds each."""

    def __init__(self, recorded: Sequence[bytes]) -> None:
        self._recorded = tuple(recorded)
        self._wounds = (_cut, _put, _word, _word, _word, _line, _flip, _repeat, self._join)

    def __call__(self, random: Random) -> bytes:
        data = random.choice(self._recorded)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5))):
            data = random.choice(self._wounds)(data, random)
        return data

    def _join(self, data: bytes, random: Random) -> bytes:
        """The head of this one and the tail of another."""
        other = random.choice(self._recorded)
        return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


class DamagedJson:
    """Recorded documents of which some leaves and branches are others, duplicated or gone.

    With `strings_only` a string stays a string and every branch stays: what the API server lets
    through, as it checks the form of what it stores. Below a key of `free` anything goes.
    """

    def __init__(
        self, recorded: Sequence[Any], *, strings_only: bool = False, free: Sequence[str] = ()
    ) -> None:
        self._recorded = [json.dumps(each) for each in recorded]
        self._strings_only = strings_only
        self._free = frozenset(free)

    def __call__(self, random: Random) -> bytes:
        return json.dumps(self.document(random)).encode()

    def document(self, random: Random) -> Any:
        document = json.loads(random.choice(self._recorded))
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            self._wound(document, random)
        return document

    def _wound(self, document: Any, random: Random) -> None:
        branch, form = document, self._strings_only
        while True:
            keys = list(branch) if isinstance(branch, dict) else list(range(len(branch)))
            if not keys:
                return
            key = random.choice(keys)
            form = form and key not in self._free
            below = branch[key]
            if not (isinstance(below, dict | list) and below) or random.random() < 0.15 * (
                not form
            ):
                break
            branch = below
        if form:
            if isinstance(below, str):
                branch[key] = random.choice(STRINGS)
        elif random.random() < 0.2:
            del branch[key]
        else:
            branch[key] = (
                deep(random) if random.random() < 0.01 else json.loads(random.choice(_SCALARS))
            )


def deep(random: Random) -> Any:
    """A value that is nested as deep as a program of Python's can write it."""
    value: Any = 0
    for _ in range(random.randint(10, 300)):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def one_of(*makers: Make) -> Make:
    """Each of the makers as often."""
    return lambda random: random.choice(makers)(random)


def _piece(data: bytes, random: Random, longest: int = 40) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.randint(0, longest))


def _cut(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random)
    return data[:start] + data[end:]


def _put(data: bytes, random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice(_BYTES) + data[at:]


def _word(data: bytes, random: Random) -> bytes:
    """A word near some place is another one: of the hostile, or of the data itself."""
    found = _WORD.search(data, random.randint(0, len(data)))
    if found is None:
        return data
    other = _WORD.search(data, random.randint(0, len(data))) if random.random() < 0.3 else None
    new = other[0] if other is not None else random.choice(_BYTES)
    return data[: found.start()] + new + data[found.end() :]


def _line(data: bytes, random: Random) -> bytes:
    """A line is gone, doubled, or another's."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    match random.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case _:
            lines[at] = random.choice(lines)
    return b"\n".join(lines)


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]


def _repeat(data: bytes, random: Random) -> bytes:
    start, end = _piece(data, random, 12)
    times = _MUCH if random.random() < 0.002 else random.randint(2, 30)
    return data[:start] + data[start:end] * times + data[end:]
