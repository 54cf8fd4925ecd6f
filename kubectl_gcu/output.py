"""How the inventory is printed: as a table, as JSON or YAML, or as the vendor's gcushare did."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, is_dataclass
from itertools import chain
from typing import Any, Final

import yaml

from dra_driver.model.mode import Mode
from kubectl_gcu.inventory.views import CardView, FreeCapacity, Holder, NodeView, Totals

_RED, _PLAIN = "\x1b[31m", "\x1b[0m"
_HEAD: Final = ("NODE", "PCI ADDRESS", "INDEX", "MODEL", "MODE", "USED", "HEALTH")
_WIDE: Final = ("MINOR", "UUID", "MEMORY", "FREE")
_TAIL: Final = ("HOLDS", "CLAIM", "POD", "CONTAINERS")


def plain(text: str) -> str:
    """In one line, without characters that a terminal acts upon: others wrote events, attributes
    of cards and variables of pods."""
    shown = (" " if each.isspace() else each for each in text)
    return "".join(each if each.isprintable() else "\ufffd" for each in shown)


def table(nodes: Sequence[NodeView], *, wide: bool, colour: bool) -> str:
    """One line for each holder of a card, or for a free card; then the totals."""
    rows = [(*_HEAD, *(_WIDE if wide else ()), *_TAIL)]
    rows += [
        tuple(map(plain, _row(node, card, holder, wide=wide)))
        for node in nodes
        for card in node.cards
        for holder in card.holders or (None,)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if colour and row is not rows[0] and row[6] != "healthy":
            cells[6] = f"{_RED}{cells[6]}{_PLAIN}"
        lines.append("  ".join(cells).rstrip())
    lines.append("")
    totals = {node.name: Totals.of(node.cards) for node in nodes}
    if len(nodes) != 1:
        everything = chain.from_iterable(node.cards for node in nodes)
        totals[f"all {len(nodes)} nodes"] = Totals.of(everything)
    for name, each in totals.items():
        free = f"; free: {_free_text(each.free_capacity)}" if wide else ""
        lines.append(f"{plain(name)}: {totals_text(each)}{free}")
    return "\n".join(lines) + "\n"


def _row(node: NodeView, card: CardView, holder: Holder | None, *, wide: bool) -> tuple[str, ...]:
    used = f"{card.used}/{card.total}" if card.mode else "0"
    memory = f"{card.memory_mib} MiB" if card.memory_mib is not None else "-"
    more = (_number(card.minor), card.uuid or "-", memory, _free_text(card.free)) if wide else ()
    return (
        node.name,
        str(card.address),
        _number(card.index),
        card.model or "-",
        card.mode.value if card.mode else "free",
        used,
        ", ".join(card.problems) or "healthy",
        *more,
        *(_holder_cells(holder) if holder else ("-", "-", "-", "-")),
    )


def _holder_cells(holder: Holder) -> tuple[str, str, str, str]:
    match holder.mode:
        case Mode.WHOLE:
            holds = "card"
        case Mode.SHARED:
            holds = f"{holder.amount} slice{'s' * (holder.amount != 1)}"
        case Mode.DRS:
            holds = holder.profile or f"size {holder.amount}"
    containers = dict.fromkeys(name for pod in holder.pods for name in pod.containers)
    return (
        f"{holds} (admin)" if holder.admin else holds,
        holder.claim or "-",
        ",".join(map(str, holder.pods)) or "-",
        ",".join(containers) or "-",
    )


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _free_text(free: FreeCapacity) -> str:
    return f"{free.memory_mib} MiB, {free.cores} %"


def totals_text(totals: Totals) -> str:
    """For people: ``8 cards: 5 free, 1 whole, 2 shared (5 of 12 slices)``."""
    parts = [f"{totals.free} free"]
    if totals.whole:
        parts.append(f"{totals.whole} whole")
    if totals.shared:
        parts.append(f"{totals.shared} shared ({totals.slices[0]} of {totals.slices[1]} slices)")
    if totals.drs:
        parts.append(f"{totals.drs} in DRS mode (size {totals.sizes[0]} of {totals.sizes[1]})")
    if totals.problems:
        parts.append(f"{totals.problems} with problems")
    return f"{totals.cards} card{'s' * (totals.cards != 1)}: {', '.join(parts)}"


def as_data(nodes: Sequence[NodeView], missing: Sequence[str]) -> dict[str, Any]:
    """For programs; docs/user/kubectl-gcu.md describes the fields."""
    cards = chain.from_iterable(node.cards for node in nodes)
    return {
        "nodes": [
            {
                "name": node.name,
                "servedBy": node.served_by.value,
                "totals": _totals_data(Totals.of(node.cards)),
                "cards": [_card_data(card) for card in node.cards],
            }
            for node in nodes
        ],
        "totals": _totals_data(Totals.of(cards)),
        "missing": list(missing),
    }


def _totals_data(totals: Totals) -> dict[str, Any]:
    found = asdict(totals)
    found["freeCapacity"] = _free_data(totals.free_capacity)
    del found["free_capacity"]
    for name in ("slices", "sizes"):
        used, total = found[name]
        found[name] = {"used": used, "total": total}
    return found


def _free_data(free: FreeCapacity) -> dict[str, int]:
    return {"memoryMiB": free.memory_mib, "cores": free.cores}


def _card_data(card: CardView) -> dict[str, Any]:
    return {
        "address": str(card.address),
        "index": card.index,
        "minor": card.minor,
        "model": card.model,
        "uuid": card.uuid,
        "memoryMiB": card.memory_mib,
        "slices": card.slices,
        "size": card.size,
        "mode": card.mode.value if card.mode else "",
        "used": card.used,
        "free": _free_data(card.free),
        "problems": list(card.problems),
        "holders": [
            {
                "mode": each.mode.value,
                "amount": each.amount,
                "profile": each.profile,
                "claim": each.claim,
                "admin": each.admin,
                "pods": [
                    {
                        "namespace": pod.namespace,
                        "name": pod.name,
                        "uid": pod.uid,
                        "phase": pod.phase,
                        "containers": list(pod.containers),
                    }
                    for pod in each.pods
                ],
            }
            for each in card.holders
        ],
    }


def as_object(found: Any) -> Any:
    """A dataclass as a dictionary for `as_text`, its fields named as Kubernetes names fields."""
    if is_dataclass(found):
        return {_camel(each.name): as_object(getattr(found, each.name)) for each in fields(found)}
    return [as_object(each) for each in found] if isinstance(found, tuple) else found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def as_text(form: str, data: Any) -> str:
    """`data` of dictionaries, lists, texts and numbers, as ``json`` or ``yaml``."""
    text = json.dumps(data, indent=2) + "\n"
    return text if form == "json" else str(yaml.safe_dump(json.loads(text), sort_keys=False))


def as_gcushare(nodes: Sequence[NodeView]) -> str:
    """The list that the vendor's gcushare-scheduler-plugin serves for all nodes, with slices and
    instances beside each other, which it serves apart. Cards are called by their minor; one whose
    minor nobody publishes, by its PCI address. Whole cards are not among what gcushare serves."""
    return json.dumps([_gcushare_node(node) for node in nodes], indent=2) + "\n"


def _gcushare_node(node: NodeView) -> dict[str, Any]:
    cards = [card for card in node.cards if card.mode is not Mode.WHOLE]
    total = sum(_units(card) for card in cards)
    used = sum(card.used for card in cards)
    return {
        "name": node.name,
        "totalGCU": total,
        "usedGCU": used,
        "availableGCU": total - used,
        "devices": {
            str(card.address) if card.minor is None else str(card.minor): {
                **({"virt": "DRS" if card.mode is Mode.DRS else "Shared"} if card.mode else {}),
                "totalGCU": _units(card),
                "usedGCU": card.used,
                "availableGCU": _units(card) - card.used,
                "pods": list(_gcushare_pods(card)),
            }
            for card in cards
        },
    }


def _units(card: CardView) -> int:
    return card.total or card.slices or card.size


def _gcushare_pods(card: CardView) -> Iterator[dict[str, Any]]:
    for holder in card.holders:
        for pod in holder.pods:
            yield {
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
                "creationTimestamp": pod.created or None,
                "usedGCU": holder.amount,
                "phase": pod.phase,
                "containers": {
                    name: {"allocated": True, "request": holder.amount}
                    | ({"profileName": holder.profile} if holder.profile else {})
                    for name in pod.containers
                },
            }
