"""How full a node is, counted in cards and remembered until the node's next change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from controller.allocator.changes import Changes
from controller.allocator.device import Device, DeviceKind, Place
from controller.allocator.holdings import Holdings
from controller.allocator.inventory import Inventory
from controller.allocator.taints import untolerated

WHOLE = 1000  # a card, in the unit of `load`


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """`free` cards have nothing held and no taint but our own. `load` is what is held, in
    thousandths of a card. `free_at` counts free cards by their place and each part of it."""

    free: int
    load: int
    free_at: Counter[Place]


class Summaries:
    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._holdings = holdings
        self._changes = Changes(inventory, holdings)
        self._known: dict[str, NodeSummary] = {}

    def of(self, node: str, devices: Iterable[Device]) -> NodeSummary:
        """`devices` are all that can be used on the node."""
        changed = self._changes.take()
        if changed:
            for each in changed:
                self._known.pop(each, None)
            if "" in changed:
                self._known.clear()
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._summarise(devices)
        return known

    def _summarise(self, devices: Iterable[Device]) -> NodeSummary:
        cards: dict[tuple[str, str], list[Device]] = defaultdict(list)
        for device in devices:
            cards[device.card or device.id].append(device)
        free, load = 0, 0
        free_at: Counter[Place] = Counter()
        for members in cards.values():
            held = max(self._load(device) for device in members)
            load += held
            if not held and not any(_is_marked(device.kind) for device in members):
                free += 1
                free_at.update(group for _, group in levels(members[0].place))
        return NodeSummary(free, load, free_at)

    def _load(self, device: Device) -> int:
        use = self._holdings.use(device.id)
        if use is None:
            return 0
        if use.whole or not device.multiple:
            return WHOLE
        capacity = device.kind.capacity
        return max(
            (
                min(WHOLE, use.consumed.get(name, 0) * WHOLE // (each.total.value or 1)) or 1
                for name, each in capacity.items()
            ),
            default=WHOLE,
        )


def levels(place: Place) -> tuple[tuple[int, Place], ...]:
    """The groups that a card belongs to, with their levels: its switch (0), its root complex (1),
    its NUMA node (2). What is not published groups nothing."""
    groups = (place, Place("", place.root, place.numa), Place("", "", place.numa))
    return tuple((n, group) for n, group in enumerate(groups) if place[n])


@lru_cache(1024)
def _is_marked(kind: DeviceKind) -> bool:
    return bool(untolerated(kind.taints, ()))
