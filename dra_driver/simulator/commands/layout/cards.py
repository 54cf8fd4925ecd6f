"""``efsmi -L``: a row for each card; with ``-i``, the card's instances too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_driver.simulator.commands.layout.banner import banner
from dra_driver.simulator.state import CardState, EfsmiState

_COLUMNS: Final = (
    ("SN", 18),
    ("Slot", 15),
    ("ID", 13),
    ("Bus", 16),
    ("CPU Affinity", 17),
    ("UUID", 0),
)
_RULE: Final = "-" * 98


def card_list(tool: EfsmiState, cards: Sequence[CardState], *, instances: bool) -> str:
    """The table. `instances` adds the rows of DRS instances, unless the tool is too old."""
    lines = [_row(tool.header.ljust(7), [title for title, _ in _COLUMNS]), _RULE]
    for card in cards:
        lines.append(
            _row(
                f" {card.efsmi_index}".ljust(7),
                (
                    card.serial,
                    card.slot,
                    f"{card.vendor_id}:{card.device_id}",
                    card.efsmi_bdf,
                    card.cpu_affinity,
                    card.uuid,
                ),
            )
        )
        if instances and tool.instance_rows:
            lines.extend(
                f"| {card.efsmi_index}      {one.profile.ljust(11)}{one.id}      {one.uuid} |"
                for one in card.instances
            )
    return banner(shown=tool.banner) + "\n".join(lines) + "\n"


def _row(first: str, values: Sequence[str]) -> str:
    # A value too long for its column pushes the others on, but never touches the next one.
    cells = (
        value.ljust(width - 1) + " " if width else value
        for value, (_, width) in zip(values, _COLUMNS, strict=True)
    )
    return first + "".join(cells)
