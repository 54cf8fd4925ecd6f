"""Reading ``efsmi -L``: which index stands for which PCI address."""

from __future__ import annotations

import re

import msgspec

from dra_driver.hardware.efsmi.field_reader import at_most
from dra_driver.model.errors import InvalidValue
from dra_driver.model.pci import PciAddress

_INDEX = re.compile(r"[0-9]{1,4}")


class ListedCard(msgspec.Struct, frozen=True):
    """One row: efsmi's index, the PCI address and the card's uuid."""

    index: int
    address: PciAddress
    uuid: str


def parse_list(text: str) -> tuple[ListedCard, ...]:
    """The rows of ``efsmi -L`` in their order; headers, rules, DRS instance rows and anything
    else that is no card's row are passed over.

    Two rows may claim one index or one address: who joins them must look. Raises HardwareError
    where there are too many.
    """
    rows = (_row(line.split()) for line in text.splitlines())
    return at_most((row for row in rows if row is not None), "efsmi -L")


def _row(fields: list[str]) -> ListedCard | None:
    # Slot may hold a blank (``PCIE5 (X16)``), so fields are not counted: the address is known by
    # its form; index and serial stand first, the uuid last.
    if len(fields) < 4 or _INDEX.fullmatch(fields[0]) is None:
        return None
    for field in fields[2:-1]:
        try:
            address = PciAddress.parse(field)
        except InvalidValue:
            continue
        return ListedCard(int(fields[0]), address, fields[-1])
    return None
