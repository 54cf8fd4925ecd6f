"""What efsmi printed, made printable for messages; and a reader of one card's values, which
collects the values that it does not understand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final, TypeVar

from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.pci import PciAddress

Values = Mapping[tuple[str, str], Any]
"""By (section, key): text, or what JSON has for it."""

_FLAGS: Final = {"true": True, "enable": True, "false": False, "disable": False}
_NOT_TOLD: Final = frozenset({"", "-", "n/a"})
_MEBIBYTES: Final = re.compile(r"([0-9]{1,9})(?:\.0+)?\s*(?:MiB)?", re.IGNORECASE)
_COUNT: Final = re.compile(r"([0-9]{1,18})")
# ``35 ℃``, ``39 C``, ``99 W``, or without a unit.
CELSIUS: Final = re.compile(r"(-?[0-9]{1,3}(?:\.[0-9]{1,6})?)\s*(?:℃|°?C)?")
WATTS: Final = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,6})?)\s*W?")
# Without a unit a number is taken for MiB (a tool of others reads the JSON so); what is above
# must be bytes or KiB, as no card has 16 TiB.
_MOST_MEBIBYTES: Final = 2**24
_LONGEST_TEXT: Final = 256  # characters; names, uuids and versions have some twenty
_MOST_ROWS: Final = 512
_LONGEST_SHOWN: Final = 120  # characters; enough for any line of efsmi, short enough for an event

Row = TypeVar("Row")


def printable(text: str) -> str:
    """`text` in one line, its control characters and lone surrogates (which an escape in JSON can
    bring in) replaced."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


def shown(text: str) -> str:
    """The same, cut."""
    line = printable(text)
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 1]}…"


def last_line(text: str) -> str:
    """The last line that is not blank, as `shown`; empty where there is none."""
    lines = text.split("\n")
    return next((shown(line) for line in reversed(lines) if line.strip()), "")


def at_most(rows: Iterable[Row], where: str) -> tuple[Row, ...]:
    """The rows. More than any machine has are refused, because each row is compared with every
    other later on. Raises HardwareError."""
    found = tuple(islice(rows, _MOST_ROWS + 1))
    if len(found) > _MOST_ROWS:
        raise HardwareError(
            f"`{where}` prints more than {_MOST_ROWS} cards or instances",
            remedy="run it on the node to see what it prints",
        )
    return found


class FieldReader:
    """Each method gives None for a value that is not there, is ``N/A``, or is not understood. The
    latter are in `unclear`, too (``ECC Mode / Current is 'maybe'``)."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.unclear: list[str] = []

    def text(self, section: str, key: str) -> str | None:
        value = self._values.get((section, key))
        if isinstance(value, bool | int | float | str):
            printed = printable(str(value))
            if len(printed) <= _LONGEST_TEXT:
                return None if printed.lower() in _NOT_TOLD else printed
        if value is not None:
            self._odd(section, key, value)
        return None

    def flag(self, section: str, key: str) -> bool | None:
        printed = self.text(section, key)
        if printed is not None and printed.lower() not in _FLAGS:
            self._odd(section, key, printed)
        return None if printed is None else _FLAGS.get(printed.lower())

    def mebibytes(self, section: str, key: str, *, least: int = 1) -> int | None:
        """Memory of a card, with ``MiB`` or without a unit; less than `least` is not understood."""
        printed = self._matched(section, key, _MEBIBYTES)
        if printed is None or least <= int(printed) < _MOST_MEBIBYTES:
            return None if printed is None else int(printed)
        self._odd(section, key, self._values[section, key])
        return None

    def count(self, section: str, key: str) -> int | None:
        printed = self._matched(section, key, _COUNT)
        return None if printed is None else int(printed)

    def number(self, section: str, key: str, form: re.Pattern[str]) -> float | None:
        """The first group of `form`, which is `CELSIUS` or `WATTS`."""
        printed = self._matched(section, key, form)
        return None if printed is None else float(printed)

    def _matched(self, section: str, key: str, form: re.Pattern[str]) -> str | None:
        """The first group of `form`."""
        printed = self.text(section, key)
        match = form.fullmatch(printed or "")
        if printed is not None and match is None:
            self._odd(section, key, printed)
        return match[1] if match else None

    def address(self, section: str) -> PciAddress | None:
        """From the four keys of PCIe Info, which are hexadecimal text without ``0x``."""
        keys = ("Domain", "Bus", "Dev", "Func")
        values = [self._values.get((section, key)) for key in keys]
        if None in values:
            return None
        # Bare numbers of JSON would not say whether they were meant as hexadecimal.
        if all(isinstance(value, str) for value in values):
            domain, bus, device, function = (str(value).strip() for value in values)
            with suppress(InvalidValue):
                return PciAddress.parse(
                    f"{domain.zfill(4)}:{bus.zfill(2)}:{device.zfill(2)}.{function}"
                )
        self._odd(section, " ".join(keys), " ".join(map(str, values)))
        return None

    def _odd(self, section: str, key: str, value: object) -> None:
        self.unclear.append(f"{section} / {key} is '{shown(str(value))}'")
