"""How the inventory is printed: as a table, as JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, Final, NamedTuple

import yaml

from dra_driver.model.mode import Mode
from kubectl_gcu.inventory.views import (
    CardView,
    FreeCapacity,
    Holder,
    HoldingPod,
    LargestRequests,
    NodeView,
    Totals,
)

_RED, _PLAIN = "\x1b[31m", "\x1b[0m"
_HEALTHY, _UNKNOWN = "healthy", "-"


def plain(text: str) -> str:
    """In one line, without characters that a terminal acts upon: others wrote events, attributes
    of cards and variables of pods."""
    shown = (" " if each.isspace() else each for each in text)
    return "".join(each if each.isprintable() else "\ufffd" for each in shown)


class _Line(NamedTuple):
    """A line of the table: a holder of a card, or a free card."""

    node: NodeView
    card: CardView
    holder: Holder | None


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table; a `wide` one is shown with ``-o wide`` alone."""

    title: str
    text: Callable[[_Line], str]
    wide: bool = False

    def cells(self, lines: Sequence[_Line], *, colour: bool) -> list[str]:
        """The title and the cell of each line, of one width. With `colour` what is not healthy is
        red."""
        texts = [plain(self.text(line)) for line in lines]
        width = max(map(len, (self.title, *texts)))
        reddens = colour and self is _HEALTH
        cells = (
            f"{_RED}{text.ljust(width)}{_PLAIN}"
            if reddens and text not in {_HEALTHY, _UNKNOWN}
            else text.ljust(width)
            for text in texts
        )
        return [self.title.ljust(width), *cells]


def table(nodes: Sequence[NodeView], *, wide: bool, colour: bool) -> str:
    """One line for each holder of a card, or for a free card; then the totals."""
    rows = [
        _Line(node, card, holder)
        for node in nodes
        for card in node.cards
        for holder in card.holders or (None,)
    ]
    columns = [column for column in _COLUMNS if wide or not column.wide]
    cells = zip(*(column.cells(rows, colour=colour) for column in columns), strict=True)
    lines = ["  ".join(line).rstrip() for line in cells]
    lines.append("")
    totals = {node.name: Totals.of(node.cards) for node in nodes}
    if len(nodes) != 1:
        everything = chain.from_iterable(node.cards for node in nodes)
        totals[f"all {len(nodes)} nodes"] = Totals.of(everything)
    for name, its in totals.items():
        free = f"; free: {_free_text(its.free_capacity)}" if wide else ""
        lines.append(f"{plain(name)}: {totals_text(its)}{free}")
    return "\n".join(lines) + "\n"


def _used(line: _Line) -> str:
    card = line.card
    return f"{card.used}/{card.total}" if card.total else str(card.used)


def _health(line: _Line) -> str:
    known = _HEALTHY if line.card.is_offered else _UNKNOWN
    return ", ".join(line.card.problems) or known


def _memory(line: _Line) -> str:
    return "-" if line.card.memory_mib is None else f"{line.card.memory_mib} MiB"


def _held(line: _Line) -> str:
    holder = line.holder
    if holder is None:
        return "-"
    match holder.mode:
        case Mode.WHOLE:
            amount = "card"
        case Mode.SHARED:
            amount = f"{holder.amount} slice{'s' * (holder.amount != 1)}"
        case Mode.DRS:
            amount = holder.profile or f"size {holder.amount}"
    return f"{amount} (admin)" if holder.admin else amount


def _pods(line: _Line) -> tuple[HoldingPod, ...]:
    return line.holder.pods if line.holder else ()


def _containers(line: _Line) -> str:
    names = dict.fromkeys(
        f"{name} (ended)" if name in pod.ended else name
        for pod in _pods(line)
        for name in pod.containers
    )
    return ",".join(names) or "-"


_HEALTH: Final = _Column("HEALTH", _health)
_COLUMNS: Final = (
    _Column("NODE", lambda line: line.node.name),
    _Column("PCI ADDRESS", lambda line: str(line.card.address)),
    _Column("INDEX", lambda line: _number(line.card.index)),
    _Column("MODEL", lambda line: line.card.model or "-"),
    _Column("MODE", lambda line: line.card.mode.value if line.card.mode else "free"),
    _Column("USED", _used),
    _HEALTH,
    _Column("MINOR", lambda line: _number(line.card.minor), wide=True),
    _Column("UUID", lambda line: line.card.uuid or "-", wide=True),
    _Column("MEMORY", _memory, wide=True),
    _Column("FREE", lambda line: _free_text(line.card.free), wide=True),
    _Column("HOLDS", _held),
    _Column("CLAIM", lambda line: line.holder.claim if line.holder and line.holder.claim else "-"),
    _Column("POD", lambda line: ",".join(map(str, _pods(line))) or "-"),
    _Column("CONTAINERS", _containers),
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
        parts.append(f"{totals.shared} shared ({_of(totals.slices)} slices)")
    if totals.drs:
        parts.append(f"{totals.drs} in DRS mode (size {_of(totals.sizes)})")
    if totals.problems:
        parts.append(f"{totals.problems} with problems")
    return f"{totals.cards} card{'s' * (totals.cards != 1)}: {', '.join(parts)}"


def _of(used_and_total: tuple[int, int]) -> str:
    """The total is 0 where the cards are held, and nobody says how much they have."""
    used, total = used_and_total
    return f"{used} of {total}" if total else str(used)


def as_data(nodes: Sequence[NodeView], missing: Sequence[str]) -> dict[str, Any]:
    """For programs; docs/user/kubectl-gcu.md describes the fields."""
    cards = chain.from_iterable(node.cards for node in nodes)
    largest = reduce(or_, map(LargestRequests.of, nodes), LargestRequests())
    return {
        "nodes": [node_data(node, Totals.of(node.cards)) for node in nodes],
        **summary_data(Totals.of(cards), largest, missing),
    }


def node_data(node: NodeView, totals: Totals) -> dict[str, Any]:
    """One of ``nodes`` of `as_data`; `totals` are the node's."""
    return {
        "name": node.name,
        "servedBy": node.served_by.value,
        "unschedulable": node.unschedulable,
        "totals": _totals_data(totals),
        "cards": [_card_data(card) for card in node.cards],
    }


def summary_data(
    totals: Totals, largest: LargestRequests, missing: Sequence[str]
) -> dict[str, Any]:
    """What `as_data` has beside ``nodes``."""
    return {
        "totals": _totals_data(totals),
        "largest": as_object(largest),
        "missing": list(missing),
    }


def _totals_data(totals: Totals) -> dict[str, Any]:
    data = asdict(totals)
    data["freeCapacity"] = _free_data(totals.free_capacity)
    del data["free_capacity"]
    for name in ("slices", "sizes"):
        used, total = data[name]
        data[name] = {"used": used, "total": total}
    return data


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
        "whole": card.whole,
        "slices": card.slices,
        "size": card.size,
        "sizes": list(card.sizes),
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
                        "created": pod.created,
                        "containers": list(pod.containers),
                        "ended": list(pod.ended),
                    }
                    for pod in each.pods
                ],
            }
            for each in card.holders
        ],
    }


def as_object(value: Any) -> Any:
    """A dataclass as a dictionary for `as_text`, its fields named as Kubernetes names fields."""
    if is_dataclass(value):
        return {_camel(each.name): as_object(getattr(value, each.name)) for each in fields(value)}
    return [as_object(each) for each in value] if isinstance(value, tuple) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def as_text(form: str, data: Any) -> str:
    """`data` of dictionaries, lists, texts and numbers, as ``json`` or ``yaml``."""
    text = json.dumps(data, indent=2) + "\n"
    return text if form == "json" else str(yaml.safe_dump(json.loads(text), sort_keys=False))
