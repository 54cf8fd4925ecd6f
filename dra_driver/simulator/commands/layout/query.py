"""``efsmi -q``: everything about a card, in sections of keys and values; text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dra_driver.simulator.commands.layout.banner import banner
from dra_driver.simulator.state import CardState, EfsmiState

ERROR_KINDS: Final = (
    "User Triggered Reset",
    "Internal Error",
    "SIP Error",
    "Bus Error",
    "FW Error",
    "DTE Error",
    "DRAM HBM Error",
    "PCIE Error",
    "GCU-LARE Error",
    "Unknown Error",
)
# The column of the colon, whatever the depth of the key.
_VALUE_COLUMN: Final = 32

_UNITS: Final = frozenset({"MiB", "MiB/s", "W", "%", "℃", "C"})

# A section's keys in the order they are printed; a value that is a dict is a section below.
Section = dict[str, Any]


def query_text(tool: EfsmiState, driver_version: str, cards: Sequence[CardState]) -> str:
    """One block for each card."""
    lines: list[str] = []
    for card in cards:
        lines.append(f"DEV ID {card.efsmi_index}")
        lines.extend(_lines(_sections(tool, driver_version, card), 4))
    return banner(shown=tool.banner) + "\n".join(lines) + "\n"


def query_json(tool: EfsmiState, driver_version: str, cards: Sequence[CardState]) -> str:
    """The same sections as objects; with `tool.json_units` off, amounts are bare numbers."""
    devices = []
    for card in cards:
        sections = _sections(tool, driver_version, card)
        if not tool.json_units:
            sections = _bare(sections)
        devices.append({"id": card.efsmi_index, **sections})
    return json.dumps({"devices": devices}, ensure_ascii=False, indent=4) + "\n"


def _sections(tool: EfsmiState, driver_version: str, card: CardState) -> Section:
    sections = {
        "Driver Info": {"Ver": driver_version},
        "Device Info": _device(tool, card),
        "PCIe Info": _pcie(tool, card),
        "Power Info": {
            "Power Capa": f"{card.power_cap_watts} W",
            "Cur Power": "N/A" if card.power_watts is None else f"{card.power_watts} W",
            "Dpm Level": "Sleep",
        },
        "Device Mem Info": _memory(tool, card),
        "Temperature Info": {"GCU Temp": f"{card.temperature} {tool.temperature_unit}"},
        "Device Usage Info": {"GCU Usage": "0.0 %"},
        "ECC Mode": {"Current": card.ecc_current, "Pending": card.ecc_pending},
    }
    if tool.rma_info:
        sections["RMA Info"] = {"Flags": str(card.rma), "Total DBE": "0"}
    counts = {kind: card.errors.get(kind, 0) for kind in ERROR_KINDS}
    sections["Error Records"] = {
        "Total Error Count": str(sum(counts.values())),
        "Reset Count": "0",
        "Last Reset Date": "N/A",
    }
    sections["Error Details"] = {kind: str(count) for kind, count in counts.items()}
    return sections


def _device(tool: EfsmiState, card: CardState) -> Section:
    return {
        "Dev Name": f"Enflame {card.model}" if tool.vendor_in_name else card.model,
        "Dev UUID": card.uuid,
        "Dev SN": f"{card.serial}   ",
        "Dev PN": "EFB-0000000-00      ",
        "Dev MFD": "2025-1-1",
        "Health": str(card.health),
    }


def _pcie(tool: EfsmiState, card: CardState) -> Section:
    domain, bus, rest = card.efsmi_bdf.split(":")
    device, function = rest.split(".")
    link = {
        "Max Link Speed": "Gen5",
        "Max Link Width": "X16",
        "Cur Link Speed": "Gen4",
        "Cur Link Width": "X16",
        "Tx Throughput": "0 MiB/s",
        "Rx Throughput": "0 MiB/s",
    }
    return {
        "Vendor ID": card.vendor_id,
        "Device ID": card.device_id,
        "Domain": domain,
        "Bus": bus,
        "Dev": device,
        "Func": function,
        **(link if tool.keys == "old" else {"Link Info": link}),
    }


def _memory(tool: EfsmiState, card: CardState) -> Section:
    # No program ever runs on a simulated card, so nothing of its memory is used.
    total = card.form.memory_mib
    if tool.keys == "old":
        return {"Mem Size": f"{total} MiB", "Mem Usage": "0 MiB"}
    return {
        "Total Size": f"{total} MiB",
        "Reserved Size": f"{card.reserved_mib} MiB",
        "Used Size": "0 MiB",
        "Free Size": f"{max(0, total - card.reserved_mib)} MiB",
    }


def _lines(section: Section, indent: int) -> Iterator[str]:
    for key, value in section.items():
        margin = " " * indent
        if isinstance(value, dict):
            # Seen on real machines: headings of the second level are padded, the first are not.
            yield margin + (key if indent == 4 else key.ljust(_VALUE_COLUMN - indent))
            yield from _lines(value, indent + 4)
        else:
            yield f"{(margin + key).ljust(_VALUE_COLUMN)}: {value}"


def _bare(section: Section) -> Section:
    return {
        key: _bare(value) if isinstance(value, dict) else _bare_amount(value)
        for key, value in section.items()
    }


def _bare_amount(value: str) -> str | int | float:
    amount, _, unit = value.partition(" ")
    if unit not in _UNITS:
        return value
    return float(amount) if "." in amount else int(amount)
