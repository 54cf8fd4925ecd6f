"""Other drivers, as the search for devices of a node reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.allocator.allocated_devices import DeviceUsage
from controller.allocator.device import Device
from controller.allocator.device_request import CapacityFit, DeviceRequest
from controller.allocator.nodes.signature import has_room
from controller.allocator.others.allocated import OtherAllocations
from controller.allocator.others.inventory import OtherInventory
from dra_driver.selector.selector import Selectors


class OtherFit(NamedTuple):
    """A device that is large enough for a request, whether it `is_free` for it, what it would give,
    and what is allocated of it."""

    device: Device
    is_free: bool
    capacity_fit: CapacityFit
    use: DeviceUsage | None


class OtherDrivers:
    """`inventory` has what they publish, `allocated` what claims have of it."""

    def __init__(self, inventory: OtherInventory | None = None) -> None:
        self.inventory = inventory or OtherInventory()
        self.allocated = OtherAllocations()
        self._changed_nodes = self.inventory.watch()
        self._changed_pools = self.allocated.watch()

    def emptied(self) -> OtherDrivers:
        """The same devices with nothing allocated; it follows what is published."""
        return OtherDrivers(self.inventory)

    def take_changed(self) -> set[str]:
        """The nodes on which something was published or allocated since the last time."""
        nodes = set(self._changed_nodes)
        for pool in self._changed_pools:
            nodes.update(self.inventory.nodes_of(pool))
        self._changed_nodes.clear()
        self._changed_pools.clear()
        return nodes

    def fits(
        self, node: str, device_request: DeviceRequest, selectors: Selectors
    ) -> Iterator[OtherFit]:
        """The devices of the node that are large enough for the request, in the order in which
        kube-scheduler takes them. Raises DevicesUnknown and AllowanceSpent."""
        for device in self.inventory.select(node, device_request, selectors):
            capacity_fit, use = device_request.capacity_fit(device.kind), self.allocated.use(device)
            assert capacity_fit is not None  # or it would not be selected
            is_free = not capacity_fit.taints and _is_free(
                device, device_request, capacity_fit, use
            )
            yield OtherFit(device, is_free, capacity_fit, use)


def _is_free(
    device: Device,
    device_request: DeviceRequest,
    capacity_fit: CapacityFit,
    use: DeviceUsage | None,
) -> bool:
    if use is None:
        return True
    if device.multiple and not has_room(capacity_fit, use):
        return False
    return device_request.admin_access or (device.multiple and not use.wholes)
