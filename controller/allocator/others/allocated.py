"""What claims have of devices of other drivers."""

from __future__ import annotations

from collections import defaultdict

from controller.allocator.allocated_devices import AllocatedDevices, DeviceAllocation, DeviceUsage
from controller.allocator.device import Device
from controller.allocator.others.inventory import PoolId

OtherAllocation = tuple[str, DeviceAllocation]
"""A driver, and one result of an allocation that is of its devices."""


class OtherAllocations:
    """Counts allocations, as `AllocatedDevices` does for one driver."""

    def __init__(self) -> None:
        self._by_driver: defaultdict[str, AllocatedDevices] = defaultdict(AllocatedDevices)
        self._watchers: list[set[PoolId]] = []

    def add(self, allocation: OtherAllocation) -> None:
        driver, of_device = allocation
        self._by_driver[driver].add(of_device)
        self._tell(allocation)

    def remove(self, allocation: OtherAllocation) -> None:
        """Take back what was added."""
        driver, of_device = allocation
        self._by_driver[driver].remove(of_device)
        self._tell(allocation)

    def watch(self) -> set[PoolId]:
        """From now on, the pools of devices whose use changes are put into the set."""
        self._watchers.append(set())
        return self._watchers[-1]

    def use(self, device: Device) -> DeviceUsage | None:
        """What is allocated of the device; None if nothing is."""
        of_driver = self._by_driver.get(device.driver)
        return None if of_driver is None else of_driver.use(device.id)

    def _tell(self, allocation: OtherAllocation) -> None:
        driver, of_device = allocation
        for watcher in self._watchers:
            watcher.add((driver, of_device.device.pool))
