"""What a tool printed, as it may stand in a message for people."""

from __future__ import annotations

_LONGEST = 120  # characters; enough for any line of efsmi, short enough for an event


def printable(text: str) -> str:
    """`text` in one line, its control characters and lone surrogates (which an escape in JSON can
    bring in) replaced."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


def shown(text: str) -> str:
    """The same, cut."""
    line = printable(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def last_line(text: str) -> str:
    """The last line that is not blank, as `shown`; empty where there is none."""
    lines = text.split("\n")
    return next((shown(line) for line in reversed(lines) if line.strip()), "")
