"""Values of one card as efsmi printed them, read one by one; what is odd is collected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

from dra_driver.hardware.efsmi.sanitize import printable, shown
from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.pci import PciAddress

Values = Mapping[tuple[str, str], Any]
"""By (section, key): text, or what JSON has for it."""

_FLAGS: Final = {"true": True, "enable": True, "false": False, "disable": False}
_NOT_TOLD: Final = frozenset({"", "-", "n/a"})
_MEBIBYTES: Final = re.compile(r"([0-9]{1,9})(?:\.0+)?\s*(?:MiB)?", re.IGNORECASE)
_COUNT: Final = re.compile(r"[0-9]{1,18}")
# Without a unit a number is taken for MiB (a tool of others reads the JSON so); what is above
# must be bytes or KiB, as no card has 16 TiB.
_MOST_MEBIBYTES: Final = 2**24
_LONGEST_TEXT: Final = 256  # characters; names, uuids and versions have some twenty
_MOST_ROWS: Final = 512

Row = TypeVar("Row")


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
    """Each method gives None for a value that is not there, is ``N/A``, or is not understood;
    the latter are in `unclear` too."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._unclear: list[str] = []

    @property
    def unclear(self) -> tuple[str, ...]:
        return tuple(self._unclear)

    def has(self, section: str, key: str) -> bool:
        return (section, key) in self._values

    def text(self, section: str, key: str) -> str | None:
        value = self._values.get((section, key))
        if isinstance(value, bool | int | float | str):
            told = printable(str(value))
            if len(told) <= _LONGEST_TEXT:
                return None if told.lower() in _NOT_TOLD else told
        if value is not None:
            self._odd(section, key, value)
        return None

    def flag(self, section: str, key: str) -> bool | None:
        told = self.text(section, key)
        if told is not None and told.lower() not in _FLAGS:
            self._odd(section, key, told)
        return None if told is None else _FLAGS.get(told.lower())

    def mebibytes(self, section: str, key: str) -> int | None:
        """A card's memory: never 0, and with ``MiB`` or without a unit."""
        told = self.text(section, key)
        match = _MEBIBYTES.fullmatch(told or "")
        amount = int(match[1]) if match else 0
        if 0 < amount < _MOST_MEBIBYTES:
            return amount
        if told is not None:
            self._odd(section, key, told)
        return None

    def count(self, section: str, key: str) -> int | None:
        told = self.text(section, key)
        if told is None or _COUNT.fullmatch(told):
            return None if told is None else int(told)
        self._odd(section, key, told)
        return None

    def address(self, section: str) -> PciAddress | None:
        """From the four keys of PCIe Info, which are hexadecimal text without ``0x``."""
        keys = ("Domain", "Bus", "Dev", "Func")
        values = [self._values.get((section, key)) for key in keys]
        if None in values:
            return None
        told = " ".join(str(value) for value in values)
        # Bare numbers of JSON would not say whether they were meant as hexadecimal.
        if all(isinstance(value, str) for value in values):
            domain, bus, device, function = (str(value).strip() for value in values)
            try:
                return PciAddress.parse(
                    f"{domain.zfill(4)}:{bus.zfill(2)}:{device.zfill(2)}.{function}"
                )
            except InvalidValue:
                pass
        self._odd(section, "Domain Bus Dev Func", told)
        return None

    def _odd(self, section: str, key: str, value: object) -> None:
        self._unclear.append(f"{section} / {key} is '{shown(str(value))}'")
