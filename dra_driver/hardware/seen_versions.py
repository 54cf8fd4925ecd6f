"""Which models of cards, with which versions of the vendor's software, this driver was seen with.

The vendor gives its driver and `efsmi` one version. The table in docs/user/first-real-gcu.md, the
agent's event on a node, and its warning come from here; who runs the driver on a card adds a row.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import msgspec

_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)(?:\.|$)")
_CHECK_LIST: Final = "docs/user/first-real-gcu.md is a check list"

Version = tuple[int, int]


class Evidence(StrEnum):
    """How the driver was seen with a card."""

    HARDWARE = "run on this card"
    TEXT = "read what `efsmi` printed there"


class Seen(msgspec.Struct, frozen=True):
    """One model with versions from `oldest` to `newest`, by their first two numbers."""

    model: str
    oldest: Version
    newest: Version
    evidence: Evidence
    source: str


SEEN: Final = (Seen("S60", (1, 2), (1, 7), Evidence.TEXT, "public dumps of real machines"),)


def untried(model: str, version: str) -> tuple[str, bool]:
    """What is not known of this driver with such a card, for people, and whether it is a warning:
    then not even the output of its `efsmi` was seen. An empty text if the driver has run on it."""
    match = _NUMBERS.match(version)
    numbers = (int(match[1]), int(match[2])) if match else (0, 0)
    rows = [row for row in SEEN if row.model == model and row.oldest <= numbers <= row.newest]
    if any(row.evidence is Evidence.HARDWARE for row in rows):
        return "", False
    card = f"{model} with the vendor's driver {version or 'of unknown version'}"
    if rows:
        return f"this driver has not run on {card} yet, only read what efsmi prints there", False
    return f"this driver knows neither {card} nor what efsmi prints there; {_CHECK_LIST}", True
