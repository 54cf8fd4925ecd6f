"""Which selected devices of a node nothing else excludes, remembered until the node's change."""

from __future__ import annotations

from typing import NamedTuple

from controller.allocator.changes import Changed
from controller.allocator.device import Device, DeviceId, DeviceKind
from controller.allocator.holdings import Holdings, Use
from controller.allocator.inventory import Inventory
from controller.allocator.tables import Tables


class Opening(NamedTuple):
    """A device that is free, or held in part by shares: then `use` says what of it."""

    device: Device
    use: Use | None


class NodeOpenings(NamedTuple):
    """The same twice: device by device, and for what does not look at single devices the kinds of
    free ones and the uses of shared ones."""

    devices: tuple[Opening, ...]
    free: tuple[DeviceKind, ...]
    shared: tuple[tuple[DeviceKind, Use], ...]


class Openings:
    """What is held decides here, whatever is asked of a device: demands that differ in their
    amounts alone share the answer."""

    def __init__(self, inventory: Inventory, holdings: Holdings) -> None:
        self._inventory = inventory
        self._holdings = holdings
        self._tables: Tables[tuple[str, ...], NodeOpenings] = Tables()

    def forget(self, changed: Changed) -> None:
        self._tables.forget(changed.nodes)

    def among(
        self, selectors: tuple[str, ...], node: str, devices: tuple[Device, ...]
    ) -> NodeOpenings:
        """Of `devices`, which `selectors` select on the node."""
        if self._inventory.roams:
            return self._open(devices)
        table = self._tables.of(selectors)
        known = table.get(node)
        if known is None:
            known = table[node] = self._open(devices)
        return known

    def holder_of_card(self, device: Device) -> DeviceId | None:
        """Another device of the same card that is held: a card is in one mode at a time. One
        that vanished from its slice is known by its name."""
        held = self._holdings.in_pool(device.id.pool)
        for sibling in device.siblings:
            if sibling.name in held.uses:
                return sibling
        if device.card is None:
            return None
        for name in held.named_after.get(device.card[1], ()):
            other = DeviceId(device.id.pool, name)
            if other != device.id and other not in self._inventory.by_id:
                return other
        return None

    def _open(self, devices: tuple[Device, ...]) -> NodeOpenings:
        found = []
        for device in devices:
            held = self._holdings.in_pool(device.id.pool)
            use = held.uses.get(device.id.name)
            if use is not None and (use.whole or not device.kind.multiple):
                continue
            if not held.uses or self.holder_of_card(device) is None:
                found.append(Opening(device, use))
        return NodeOpenings(
            tuple(found),
            tuple({device.kind for device, use in found if use is None}),
            tuple((device.kind, use) for device, use in found if use is not None),
        )
