"""How full a node is, counted in cards and remembered until the node's next change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from controller.allocator.changes import ALL_NODES, Changed
from controller.allocator.demand import WHOLE
from controller.allocator.device import Device, DeviceKind, Place
from controller.allocator.holdings import Holdings, Use
from controller.allocator.taints import untolerated


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """`free` cards have nothing held and no taint but our own. `load` is what is held, in
    thousandths of a card. `free_at` counts free cards by the groups that they stand in."""

    free: int
    load: int
    free_at: Mapping[Place, int]


class _Layout(NamedTuple):
    """What of a node does not change while its slices stay as they are: its cards' groups, which
    of them are marked by a taint, where each device is, by pool and name, and the summary of the
    node when nothing is held."""

    groups: tuple[tuple[Place, ...], ...]
    marked: frozenset[int]
    devices: Mapping[str, Mapping[str, tuple[int, Device]]]
    empty: NodeSummary


class Summaries:
    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._layouts: dict[str, _Layout] = {}
        self._known: dict[str, NodeSummary] = {}

    def forget(self, changed: Changed) -> None:
        if ALL_NODES in changed.nodes:
            self._known.clear()
            self._layouts.clear()
        for node in changed.nodes:
            self._known.pop(node, None)
        for node in changed.published:
            self._layouts.pop(node, None)

    def of(self, node: str, devices: Iterable[Device]) -> NodeSummary:
        """`devices` are all that can be used on the node."""
        known = self._known.get(node)
        if known is None:
            layout = self._layouts.get(node)
            if layout is None:
                layout = self._layouts[node] = _lay_out(devices)
            known = self._known[node] = self._summarise(layout)
        return known

    def fresh(self, devices: Iterable[Device]) -> NodeSummary:
        """The same, not kept: for devices that a node has by its labels."""
        return self._summarise(_lay_out(devices))

    def _summarise(self, layout: _Layout) -> NodeSummary:
        loads: dict[int, int] = {}
        for pool, devices in layout.devices.items():
            for name, use in self._holdings.in_pool(pool).uses.items():
                if name in devices:
                    card, device = devices[name]
                    loads[card] = max(loads.get(card, 0), _load(device, use))
        free, free_at = layout.empty.free, dict(layout.empty.free_at)
        for card in loads:
            if card not in layout.marked:
                free -= 1
                for group in layout.groups[card]:
                    free_at[group] -= 1
        return NodeSummary(free, sum(loads.values()), free_at)


def _lay_out(devices: Iterable[Device]) -> _Layout:
    cards: dict[tuple[str, str], list[Device]] = defaultdict(list)
    for device in devices:
        cards[device.card or device.id].append(device)
    found: dict[str, dict[str, tuple[int, Device]]] = defaultdict(dict)
    free_at: Counter[Place] = Counter()
    groups, marked = [], set()
    for number, members in enumerate(cards.values()):
        groups.append(tuple(group for _, group in levels(members[0].place)))
        for device in members:
            found[device.id.pool][device.id.name] = number, device
        if any(_is_marked(device.kind) for device in members):
            marked.add(number)
        else:
            free_at.update(groups[-1])
    empty = NodeSummary(len(groups) - len(marked), 0, free_at)
    return _Layout(tuple(groups), frozenset(marked), found, empty)


def _load(device: Device, use: Use) -> int:
    """At least 1 of a device of which anything is held."""
    if use.whole or not device.multiple:
        return WHOLE
    parts = [
        use.consumed.get(name, 0) * WHOLE // each.total.value
        for name, each in device.kind.capacity.items()
        if each.total.value
    ]
    return max(1, min(WHOLE, max(parts, default=WHOLE)))


@lru_cache(4096)
def levels(place: Place) -> tuple[tuple[int, Place], ...]:
    """The groups that a card belongs to, with their levels: its switch (0), its root complex (1),
    its NUMA node (2). What is not published groups nothing."""
    groups = (place, Place("", place.root, place.numa), Place("", "", place.numa))
    return tuple((n, group) for n, group in enumerate(groups) if place[n])


@lru_cache(1024)
def _is_marked(kind: DeviceKind) -> bool:
    return bool(untolerated(kind.taints, ()))
