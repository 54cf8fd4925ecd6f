"""Reading ``efsmi -L``: which index stands for which PCI address."""

from __future__ import annotations

import re

from dra_driver.hardware.efsmi.field_reader import at_most
from dra_driver.model.errors import InvalidValue
from dra_driver.model.pci import PciAddress

_INDEX = re.compile(r"[0-9]{1,4}")


def parse_index(text: str, address: PciAddress) -> int | None:
    """The index of the card in ``efsmi -L``; None if it is not there. Headers, rules, DRS instance
    rows and anything else that is no card's row are passed over. Raises HardwareError where there
    are too many rows of cards."""
    rows = (_row(line.split()) for line in text.splitlines())
    listed = at_most((row for row in rows if row is not None), "efsmi -L")
    return next((index for index, of_card in listed if of_card == address), None)


def _row(fields: list[str]) -> tuple[int, PciAddress] | None:
    # Slot may hold a blank (``PCIE5 (X16)``), so fields are not counted: the address is known by
    # its form; index and serial stand first, the uuid last.
    if len(fields) < 4 or _INDEX.fullmatch(fields[0]) is None:
        return None
    for field in fields[2:-1]:
        try:
            return int(fields[0]), PciAddress.parse(field)
        except InvalidValue:
            continue
    return None
