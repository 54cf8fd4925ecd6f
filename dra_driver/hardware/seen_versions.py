"""Which models of cards, with which versions of the vendor's software, this driver was seen with.

The vendor gives its driver and `efsmi` one version. The table in docs/user/first-real-gcu.md, the
agent's event on a node, and its warning come from here; who runs the driver on a card adds a row.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)(?:\.|$)")
_CHECK_LIST: Final = "docs/user/first-real-gcu.md is a check list"

Version = tuple[int, int]


class Seen(msgspec.Struct, frozen=True):
    """One model with versions from `oldest` to `newest`, by their first two numbers. Where the
    driver has not `run` on such a card, it read what `efsmi` printed there."""

    model: str
    oldest: Version
    newest: Version
    run: bool
    source: str


SEEN: Final = (Seen("S60", (1, 2), (1, 7), False, "public dumps of real machines"),)


def untried(model: str, version: str) -> tuple[str, bool]:
    """What is not known of this driver with such a card, for people, and whether it is a warning:
    then not even the output of its `efsmi` was seen. An empty text if the driver has run on it."""
    match = _NUMBERS.match(version)
    numbers = (int(match[1]), int(match[2])) if match else (0, 0)
    rows = [row for row in SEEN if row.model == model and row.oldest <= numbers <= row.newest]
    if any(row.run for row in rows):
        return "", False
    card = f"{model} with the vendor's driver {version or 'of unknown version'}"
    if rows:
        return f"this driver has not run on {card} yet, only read what efsmi prints there", False
    return f"this driver knows neither {card} nor what efsmi prints there; {_CHECK_LIST}", True
