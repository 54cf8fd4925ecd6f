"""Reading plain ``efsmi``: the virtualisation mode of each card, which no other output tells.

A card is a cell of two lines between bars. Fields inside a cell vary (power can be ``N/A``, a
temperature ``71℃`` or ``39 C``), so values are found by column: where the header says
``GCU Virt``, the cell below has the mode as the last word.
"""

from __future__ import annotations

import re

from dra_driver.model.card import Virtualization
from dra_driver.model.errors import HardwareError

_FIRST = re.compile(
    r"^\|\s*(?P<index>\d+)\s+\S.*\|.*\|.*\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", re.IGNORECASE
)


def parse_summary(text: str) -> dict[int, Virtualization]:
    """Virtualisation mode by efsmi index.

    Raises HardwareError where a card's cell does not have the known form: giving out a card
    whose mode is unknown could take it from somebody.
    """
    lines = iter(text.splitlines())
    modes: dict[int, Virtualization] = {}
    for line in lines:
        match = _FIRST.match(line)
        if match is None:
            continue
        index = int(match["index"])
        cells = [cell.split() for cell in next(lines, "").strip().strip("|").split("|")]
        word = cells[1][-1] if len(cells) >= 3 and cells[1] else ""
        try:
            modes[index] = Virtualization(word)
        except ValueError as error:
            raise HardwareError(
                f"`efsmi` prints no known GCU Virt for card {index} (found {word!r})",
                remedy="report this efsmi version; known are Disable, DRS and SRIOV",
            ) from error
    return modes
