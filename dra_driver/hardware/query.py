"""Reading ``efsmi -q``: blocks of ``key : value``, one block a card.

Which sections and keys exist depends on the tool's version, so values are taken by section and
exact key, and what is not known is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dra_driver.model.card import Ecc
from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.pci import PciAddress

_BLOCK = re.compile(r"^\s*DEV ID\s+(\d+)\s*$")
_MEBIBYTES = re.compile(r"(\d+)\s*MiB")


@dataclass(frozen=True, slots=True)
class QueriedCard:
    """One block. A value is None where this version of the tool does not print it.

    `model` is without the vendor's name; `memory_mib` is the card's total; `errors` the total
    count of error records.
    """

    index: int
    address: PciAddress | None
    model: str | None
    uuid: str | None
    serial: str | None
    memory_mib: int | None
    driver_version: str | None
    healthy: bool | None
    rma: bool | None
    ecc: Ecc | None
    errors: int | None


def parse_query(text: str) -> tuple[QueriedCard, ...]:
    """The blocks of ``efsmi -q``. Raises HardwareError when one index has two blocks."""
    cards: dict[int, QueriedCard] = {}
    for index, sections in _blocks(text):
        if index in cards:
            raise HardwareError(f"`efsmi -q` prints DEV ID {index} twice")
        cards[index] = _card(index, sections)
    return tuple(cards.values())


def _blocks(text: str) -> list[tuple[int, dict[tuple[str, str], str]]]:
    """(index, {(section, key): value}); a key of a nested heading counts to the outer section."""
    blocks: list[tuple[int, dict[tuple[str, str], str]]] = []
    section, section_indent = "", -1
    for line in text.splitlines():
        if match := _BLOCK.match(line):
            blocks.append((int(match[1]), {}))
            section, section_indent = "", -1
            continue
        if not blocks or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        key, colon, value = line.partition(":")
        if colon:
            blocks[-1][1].setdefault((section, key.strip()), value.strip())
        elif section_indent < 0 or indent <= section_indent:
            section, section_indent = line.strip(), indent
    return blocks


def _card(index: int, values: Mapping[tuple[str, str], str]) -> QueriedCard:
    name = values.get(("Device Info", "Dev Name"))
    memory = values.get(("Device Mem Info", "Total Size")) or values.get(
        ("Device Mem Info", "Mem Size")
    )
    current = _flag(values.get(("ECC Mode", "Current")))
    pending = _flag(values.get(("ECC Mode", "Pending")))
    count = values.get(("Error Records", "Total Error Count"), "")
    return QueriedCard(
        index=index,
        address=_address(values),
        model=name.removeprefix("Enflame").strip() if name else None,
        uuid=values.get(("Device Info", "Dev UUID")) or None,
        serial=values.get(("Device Info", "Dev SN")) or None,
        memory_mib=_mebibytes(memory),
        driver_version=values.get(("Driver Info", "Ver")) or None,
        healthy=_flag(values.get(("Device Info", "Health"))),
        rma=_flag(values.get(("RMA Info", "Flags"))),
        ecc=None if current is None else Ecc(current, current if pending is None else pending),
        errors=int(count) if count.isdecimal() else None,
    )


def _address(values: Mapping[tuple[str, str], str]) -> PciAddress | None:
    parts = [values.get(("PCIe Info", key)) for key in ("Domain", "Bus", "Dev", "Func")]
    if None in parts:
        return None
    domain, bus, device, function = parts
    try:
        return PciAddress.parse(f"{domain}:{bus}:{device}.{function}")
    except InvalidValue as error:
        raise HardwareError(f"`efsmi -q` prints a PCIe Info that is no address: {error}") from error


def _mebibytes(text: str | None) -> int | None:
    match = _MEBIBYTES.fullmatch(text or "")
    return int(match[1]) if match else None


def _flag(text: str | None) -> bool | None:
    return {"true": True, "enable": True, "false": False, "disable": False}.get(
        (text or "").lower()
    )
