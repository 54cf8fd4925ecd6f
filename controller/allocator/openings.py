"""Which selected devices of a node nothing else excludes, remembered until the node's change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.allocator.changes import Changed
from controller.allocator.device import Device, DeviceId, DeviceKind
from controller.allocator.holdings import Holdings, PoolHoldings, Use
from controller.allocator.inventory import Inventory
from controller.allocator.summary import NodeSummary
from controller.allocator.tables import Tables


class Opening(NamedTuple):
    """A device that is free, or held in part by shares: then `use` says what of it."""

    device: Device
    use: Use | None


class NodeOpenings(NamedTuple):
    """Twice the same: all devices in their order, and apart the kinds of free ones and those that
    are held in part. `summary` is the node's."""

    devices: tuple[Opening, ...]
    free: tuple[DeviceKind, ...]
    shared: tuple[Opening, ...]
    summary: NodeSummary


class Openings:
    """What is held decides here, whatever is asked of a device: demands that differ in their
    amounts alone share the answer."""

    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._holdings = holdings
        self._tables: Tables[tuple[str, ...], NodeOpenings] = Tables()

    def forget(self, changed: Changed) -> None:
        self._tables.forget(changed.nodes)

    def known(self, selectors: tuple[str, ...]) -> dict[str, NodeOpenings]:
        """By node; what is missing is to be put in."""
        return self._tables.of(selectors)

    def find(self, devices: Iterable[Device], summary: NodeSummary) -> NodeOpenings:
        """Of `devices`, those that selectors select on the node."""
        found = []
        for device in devices:
            held = self._holdings.in_pool(device.id.pool)
            if not held.uses:
                found.append(Opening(device, None))
                continue
            use = held.uses.get(device.id.name)
            if use is not None and (use.whole or not device.kind.multiple):
                continue
            if not _may_exclude(held, device) or self.holder_of_card(device) is None:
                found.append(Opening(device, use))
        return NodeOpenings(
            tuple(found),
            tuple({device.kind for device, use in found if use is None}),
            tuple(opening for opening in found if opening.use is not None),
            summary,
        )

    def holder_of_card(self, device: Device) -> DeviceId | None:
        """Another device of the same card that is held: a card is in one mode at a time. One
        that vanished from its slice is known by its name."""
        held = self._holdings.in_pool(device.id.pool)
        for sibling in device.siblings:
            if sibling in held.uses:
                return DeviceId(device.id.pool, sibling)
        if device.card is None:
            return None
        for name in held.named_after.get(device.card[1], ()):
            other = DeviceId(device.id.pool, name)
            if other != device.id and other not in self._inventory.by_id:
                return other
        return None


def _may_exclude(held: PoolHoldings, device: Device) -> bool:
    """False where nothing but the device itself is held of its card, as far as names tell: most
    devices are told apart by that."""
    if not held.uses.keys().isdisjoint(device.siblings):
        return True
    named = held.named_after.get(device.card[1]) if device.card is not None else None
    return named is not None and (len(named) > 1 or device.id.name not in named)
