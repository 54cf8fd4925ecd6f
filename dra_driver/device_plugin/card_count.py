"""The number of the node's cards as the resource `enflame.com/gcu-count`, as in the vendor's
gcushare.

The vendor's device plugin writes the number into capacity and allocatable of the Node when it
starts (github.com/EnflameTechnology/gcushare, gcushare-device-plugin, `PatchGCUCountToNode`). A
container with the resource in its limits is counted by kube-scheduler, and gets no card. Here it is
a device-plugin resource whose devices add nothing to a container, so the kubelet writes the number
(docs/adr/0019).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from dra_driver.kubelet_api.device_plugin.service import ContainerEdits, ListedDevice
from dra_driver.kubelet_api.device_plugin.serving import ResourceServers
from dra_driver.kubelet_api.sockets import Folders
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.model.names import RESOURCE_COUNT
from dra_driver.model.pci import PciAddress

CardAddresses = Callable[[], Collection[PciAddress] | None]
"""The addresses of all cards; None until they were read."""


class CountHandler:
    """The `DeviceHandler` of the count: a device for each card, whatever its use and health."""

    def __init__(self, cards: CardAddresses) -> None:
        self._cards = cards

    def devices(self) -> Sequence[ListedDevice]:
        return [ListedDevice(str(address)) for address in sorted(self._cards() or ())]

    def prefer(self, *_: Any, **__: Any) -> Sequence[str]:
        """No preference: all devices are alike."""
        return ()

    def allocate(self, *_: Any, **__: Any) -> ContainerEdits:
        return ContainerEdits()


class CardCount(ResourceServers):
    """Serves the resource. While the agent is away the kubelet keeps the capacity for five minutes,
    and allocates none of it (``endpointStopGracePeriod``)."""

    def __init__(
        self, cards: CardAddresses, *, folders: Folders, effects: Effects = NO_FAULTS
    ) -> None:
        super().__init__(
            {RESOURCE_COUNT: CountHandler(cards)},
            folders=folders,
            register_after=None,
            effects=effects,
        )
        self._cards = cards

    def serve(self) -> None:
        super().serve()
        self.wake()

    def wake(self) -> None:
        """The cards may have changed. The resource is registered once they were read."""
        self.notify()
        if self._cards() is not None:
            self.announce()
