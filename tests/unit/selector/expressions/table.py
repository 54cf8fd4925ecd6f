"""Expressions and what a real kube-scheduler 1.36.3 makes of them for one device.

The unit tests hold our evaluator against this table; tests/control_plane/test_selectors.py holds
the table, and our evaluator, against a real scheduler.
"""

from __future__ import annotations

from typing import Final

from tests.unit.selector.expressions import functions, language, optionals
from tests.unit.selector.expressions.theme import DEVICE, DRIVER, Theme, spelled

__all__ = ["DEVICE", "DRIVER", "THEMES", "THEMES_SINCE_1_37", "TOO_COSTLY", "Theme", "spelled"]

TOO_COSTLY: Final = (*functions.TOO_COSTLY, *optionals.TOO_COSTLY)
THEMES: Final = {
    "devices": language.DEVICES,
    "logic": language.LOGIC,
    "macros": language.MACROS,
    "numbers": language.NUMBERS,
    "equality": language.EQUALITY,
    "optional values": optionals.OPTIONALS,
    "strings": functions.STRINGS,
    "regular expressions": functions.REGEX,
    "format": functions.FORMAT,
    "lists": functions.LISTS,
    "quantities": functions.QUANTITIES,
    "versions": functions.SEMVERS,
    "conversions": functions.CONVERSIONS,
}
THEMES_SINCE_1_37: Final = {"fields in backquotes": language.ESCAPED}
