"""The machine as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from dra_driver.simulator.state import CardState, MachineState

_HEADER = (
    "CARD",
    "INDEX",
    "MINOR",
    "MODEL",
    "NUMA",
    "PCIE PATH",
    "MEMORY",
    "ECC",
    "VIRT",
    "CONDITION",
    "INSTANCES",
)


def show(machine: MachineState) -> str:
    """Facts of the machine, a row for each card, and the faults that are switched on."""
    loaded = "" if machine.driver_loaded else " (not loaded)"
    facts = (
        f"driver {machine.driver_version}{loaded}",
        f"efsmi {machine.efsmi.version}",
        f"placement {machine.placement}",
        f"boot {machine.boots}",
        f"change {machine.sequence}",
    )
    lines = [
        ", ".join(facts),
        "",
        *_table([_HEADER, *(_row(card) for card in machine.cards)]),
    ]
    tables = sorted({card.form.table for card in machine.cards if card.form.assumed})
    lines += [f"profile table {table} is partly assumed" for table in tables]
    for fault in machine.faults:
        times = "until cleared" if fault.times is None else f"{fault.times} times"
        lines.append(f"fault {fault.fault} on {fault.card or 'all cards'}, {times}")
    return "\n".join(lines) + "\n"


def _row(card: CardState) -> tuple[str, ...]:
    ecc = card.ecc_current
    if card.ecc_pending != ecc:
        ecc += f" (pending {card.ecc_pending})"
    instances = ", ".join(f"{one.id}:{one.profile}" for one in card.instances)
    return (
        card.bdf,
        str(card.efsmi_index),
        str(card.minor),
        card.model,
        str(card.numa_node),
        card.pci_path,
        f"{card.form.memory_mib} MiB",
        ecc,
        card.virtualization if card.drs or card.virtualization != "Disable" else "no DRS",
        _condition(card),
        instances or "-",
    )


def _condition(card: CardState) -> str:
    words = []
    if card.lost:
        words.append("lost")
    if not card.health:
        words.append("health false")
    if card.rma:
        words.append("RMA")
    if count := sum(card.errors.values()):
        words.append(f"{count} errors")
    return ", ".join(words) or "good"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
