"""Reading ``efsmi -q``: blocks of ``key : value``, one block a card; as text or as JSON.

Which sections and keys exist depends on the tool's version, so values are taken by section and
exact key, and what is not known is passed over. One card's oddity costs no other card.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_driver.hardware.efsmi.field_reader import (
    CELSIUS,
    WATTS,
    FieldReader,
    Values,
    at_most,
    last_line,
)
from dra_driver.model.card import NO_READINGS, Ecc, Readings
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

logger = logging.getLogger(__name__)

_BLOCK = re.compile(r"DEV ID\s+([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class QueriedCard:
    """One block. A value is None where this version of the tool does not print it, or prints
    ``N/A``, or what is printed is not understood. Where nothing new may be placed on the card
    then, and people are told, it is in `unclear` (``ECC Mode / Current is 'maybe'``).

    `model` is without the vendor's name; `memory_mib` is the card's total; `errors` the total
    count of error records.
    """

    index: int
    address: PciAddress | None
    model: str | None
    uuid: str | None
    memory_mib: int | None
    driver_version: str | None
    healthy: bool | None
    rma: bool | None
    ecc: Ecc | None
    errors: int | None
    unclear: tuple[str, ...]
    readings: Readings = field(default=NO_READINGS, compare=False)

    @property
    def complete(self) -> bool:
        """Whether it tells what no card can be published without."""
        return None not in (self.address, self.model, self.uuid, self.memory_mib)


def parse_query(text: str) -> tuple[QueriedCard, ...]:
    """The blocks of ``efsmi -q`` in their order; two may claim one index or one address.

    Raises HardwareError when there is none, or too many: that is never what a machine with cards
    looks like.
    """
    cards = at_most((_card(index, values) for index, values in _blocks(text)), "efsmi -q")
    if not cards:
        raise HardwareError(f"`efsmi -q` shows no card (it printed: {last_line(text)})")
    return cards


def parse_query_json(text: str) -> tuple[QueriedCard, ...] | None:
    """The devices of ``efsmi -q --json-format``, or None where it is not the JSON known:
    ``{"devices": [{"id": 0, "<section>": {"<key>": value}}]}``, values with units or without.

    Raises HardwareError where there are too many.
    """
    try:
        # Other outputs start with a banner, and some tools leave it out: accept both.
        document, _ = json.JSONDecoder().raw_decode(text, max(text.find("{"), 0))
    except (ValueError, RecursionError):
        return None
    devices = document.get("devices") if isinstance(document, dict) else None
    if not isinstance(devices, list) or not devices:
        return None
    if not all(isinstance(one, dict) and _is_index(one.get("id")) for one in devices):
        return None
    cards = (_card(one["id"], dict(_sections(one))) for one in devices)
    return at_most(cards, "efsmi -q --json-format")


def _blocks(text: str) -> Iterator[tuple[int, Values]]:
    """(index, values) of each block; a heading below another one starts a section of its own."""
    index: int | None = None
    values: dict[tuple[str, str], Any] = {}
    headings: list[tuple[int, str]] = []
    margin: int | None = None
    for line in text.splitlines():
        if match := _BLOCK.fullmatch(line.strip()):
            if index is not None:
                yield index, values
            index, values, headings, margin = int(match[1]), {}, [], None
            continue
        indent = len(line) - len(line.lstrip())
        # Left of the block's first heading stands what is not of the block: a rule, a warning.
        if index is None or not line.strip() or (margin is not None and indent < margin):
            continue
        while headings and headings[-1][0] >= indent:
            headings.pop()
        key, colon, value = line.partition(":")
        if colon:
            section = headings[-1][1] if headings else ""
            values[section, key.strip()] = value.strip()
        else:
            headings.append((indent, line.strip()))
            margin = indent if margin is None else margin
    if index is not None:
        yield index, values


def _sections(device: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    for section, keys in device.items():
        if isinstance(keys, dict):
            for key, value in keys.items():
                yield (section.strip(), key.strip()), value


def _is_index(value: object) -> bool:
    return type(value) is int and 0 <= value <= 9999


def _card(index: int, values: Values) -> QueriedCard:
    read, optional = FieldReader(values), FieldReader(values)
    name = read.text("Device Info", "Dev Name")
    is_new = ("Device Mem Info", "Total Size") in values
    memory, used = ("Total Size", "Used Size") if is_new else ("Mem Size", "Mem Usage")
    current = read.flag("ECC Mode", "Current")
    pending = read.flag("ECC Mode", "Pending")
    card = QueriedCard(
        index=index,
        address=read.address("PCIe Info"),
        model=(name.removeprefix("Enflame").strip() or None) if name else None,
        uuid=read.text("Device Info", "Dev UUID"),
        memory_mib=read.mebibytes("Device Mem Info", memory),
        driver_version=optional.text("Driver Info", "Ver"),
        healthy=read.flag("Device Info", "Health"),
        rma=read.flag("RMA Info", "Flags"),
        ecc=None if current is None else Ecc(current, current if pending is None else pending),
        errors=read.count("Error Records", "Total Error Count"),
        readings=Readings(
            temperature=optional.number("Temperature Info", "GCU Temp", CELSIUS),
            power=optional.number("Power Info", "Cur Power", WATTS),
            memory_used_mib=optional.mebibytes("Device Mem Info", used, least=0),
        ),
        unclear=tuple(read.unclear),
    )
    if optional.unclear:
        logger.debug("efsmi says what is not understood: %s", "; ".join(optional.unclear))
    return card
