"""How full a node is, counted in cards and remembered until the node's next change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from controller.allocator.changes import ALL_NODES, Changed
from controller.allocator.demand import WHOLE
from controller.allocator.device import Device, DeviceKind
from controller.allocator.holdings import Holdings, Use
from controller.allocator.taints import untolerated
from dra_driver.model.topology import Topology, bits, topology


class _Layout(NamedTuple):
    """What of a node does not change while its slices stay as they are: where its cards are, how
    many there are, which of them are marked by a taint (sets of cards are as in `Topology`), and
    where each device is, by pool and name."""

    topology: Topology
    cards: int
    marked: int
    devices: Mapping[str, Mapping[str, tuple[int, Device]]]


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """`free` cards have nothing held and no taint but our own; `free_cards` is the set of them.
    `load` is what is held, in thousandths of a card."""

    free: int
    load: int
    free_cards: int
    _layout: _Layout

    def neighbours(self, device: Device) -> tuple[int, ...]:
        """How many free cards there are beside the device's own, by their distance."""
        return self._layout.topology.neighbours(self.card(device), self.free_cards)

    def nearest(self, count: int, *devices: Iterable[Device]) -> tuple[int, ...]:
        """The cards to take for `count` devices of one of these groups; none where no group has as
        many. Numbers are as `card` has them."""
        available = [bits(self.card(each) for each in group) for group in devices]
        return self._layout.topology.nearest(count, *available, free=self.free_cards) or ()

    def distance(self, device: Device, cards: tuple[int, ...]) -> int:
        """From the device's card to the nearest of the cards; 0 if it is one of them."""
        own = self.card(device)
        if own in cards:
            return 0
        return min(self._layout.topology.distance(own, each) for each in cards)

    def spread(self, devices: Iterable[Device]) -> tuple[int, int]:
        """How far apart the devices' cards are: the largest distance and the sum of all."""
        return self._layout.topology.spread(sorted({self.card(each) for each in devices}))

    def card(self, device: Device) -> int:
        """The number of the device's card on the node."""
        return self._layout.devices[device.id.pool][device.id.name][0]


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
        free = (1 << layout.cards) - 1 & ~layout.marked & ~bits(loads)
        return NodeSummary(free.bit_count(), sum(loads.values()), free, layout)


def _lay_out(devices: Iterable[Device]) -> _Layout:
    cards: dict[tuple[str, str], list[Device]] = defaultdict(list)
    for device in devices:
        cards[device.card or device.id].append(device)
    found: dict[str, dict[str, tuple[int, Device]]] = defaultdict(dict)
    places, marked = [], 0
    for number, (_, members) in enumerate(sorted(cards.items())):
        places.append(members[0].place)
        for device in members:
            found[device.id.pool][device.id.name] = number, device
        if any(_is_marked(device.kind) for device in members):
            marked |= 1 << number
    return _Layout(topology(tuple(places)), len(places), marked, found)


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


@lru_cache(1024)
def _is_marked(kind: DeviceKind) -> bool:
    return bool(untolerated(kind.taints, ()))
