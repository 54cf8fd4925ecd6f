"""Reading ``efsmi -L``: which index stands for which PCI address."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

# Slot may hold a blank (``PCIE5 (X16)``), so the row is not split by blanks: the address is
# found by its form, the index and serial before it, the uuid as the last field.
_ROW = re.compile(
    r"^\s*(?P<index>\d+)\s+(?P<serial>\S+)\s.*?"
    r"(?P<address>(?:[0-9a-f]{4}|[0-9a-f]{8}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s.*?"
    r"(?P<uuid>\S+)\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ListedCard:
    """One row: efsmi's index, the serial number, the PCI address and the card's uuid."""

    index: int
    serial: str
    address: PciAddress
    uuid: str


def parse_list(text: str) -> tuple[ListedCard, ...]:
    """The rows of ``efsmi -L``; headers, rules and DRS instance rows are passed over.

    Raises HardwareError when two rows claim one index or one address: then nothing that the
    tool says can be joined safely.
    """
    found = tuple(
        ListedCard(
            index=int(match["index"]),
            serial=match["serial"],
            address=PciAddress.parse(match["address"]),
            uuid=match["uuid"],
        )
        for match in map(_ROW.match, text.splitlines())
        if match is not None
    )
    for what, keys in (
        ("index", [card.index for card in found]),
        ("PCI address", [card.address for card in found]),
    ):
        if len(set(keys)) != len(keys):
            raise HardwareError(f"`efsmi -L` lists one {what} twice")
    return found
