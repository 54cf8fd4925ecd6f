"""Reading plain ``efsmi``: the virtualisation mode of each card, which no other output tells.

A card is a cell of two lines between bars. Fields inside a cell vary (power can be ``N/A`` or
missing, a temperature ``71℃``, ``39 C`` or ``-``) and their widths grow, so values are found by
column: below ``GCU Virt`` of the header, the mode is the last word of a card's second line.
"""

from __future__ import annotations

import re

import msgspec

from dra_driver.hardware.efsmi.field_reader import last_line, shown
from dra_driver.model.card import Virtualization
from dra_driver.model.errors import HardwareError

_INDEX = re.compile(r"([0-9]{1,4})\s+\S")
# The domain is shortened (``00:0d:00.0``), so only what follows it is told.
_SLOT = re.compile(r"(?:^|[\s:])([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:\s|$)", re.IGNORECASE)


class SummaryRow(msgspec.Struct, frozen=True):
    """A card's cell: efsmi's index, bus, device and function as ``0d:00.0``, and the mode, None
    where the `word` at its place is not a known one."""

    index: int
    slot: str
    mode: Virtualization | None
    word: str


def parse_summary(text: str) -> tuple[SummaryRow, ...]:
    """The cards' cells in their order; two may claim one index.

    Raises HardwareError when there is no cell, or no column GCU Virt: giving out cards whose
    mode is unknown could take them from somebody.
    """
    lines = [_cells(line) for line in text.splitlines()]
    columns = (at for cells in lines for at, cell in enumerate(cells) if cell.endswith("GCU Virt"))
    column = next(columns, None)
    if column is None:
        raise HardwareError(
            f"`efsmi` shows no column GCU Virt (it printed: {last_line(text)})",
            remedy="this driver needs efsmi 1.2 or newer",
        )
    found = []
    for first, second in zip(lines, [*lines[1:], [""]], strict=True):
        index = _INDEX.match(first[0])
        slot = next(filter(None, map(_SLOT.search, first[1:])), None)
        if index is not None and slot is not None:
            words = second[column].split() if column < len(second) else []
            word = words[-1] if words else ""
            mode = Virtualization(word) if word in set(Virtualization) else None
            found.append(SummaryRow(int(index[1]), slot[1].lower(), mode, shown(word)))
    if not found:
        raise HardwareError(f"`efsmi` shows no card (it printed: {last_line(text)})")
    return tuple(found)


def _cells(line: str) -> list[str]:
    """What follows each of a line's bars, stripped; one empty cell for a line without bars."""
    line = line.strip()
    if not line.startswith("|"):
        return [""]
    return [cell.strip() for cell in line[1:].split("|")]
