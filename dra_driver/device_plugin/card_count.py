"""How many cards the node has, as the vendor's gcushare tells it: the resource
`enflame.com/gcu-count`.

Its device plugin writes the number of all cards into capacity and allocatable of the Node when it
starts, and looks at the resource no more (github.com/EnflameTechnology/gcushare,
gcushare-device-plugin, `PatchGCUCountToNode`). A container that has it in its limits is counted by
kube-scheduler, and gets no card. Served as a resource whose devices give nothing it is the same,
and the agent writes nothing to the API server: the kubelet does (docs/adr/0019).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from dra_driver.kubelet_api.device_plugin.folders import Folders
from dra_driver.kubelet_api.device_plugin.handler import ContainerEdits, ListedDevice
from dra_driver.kubelet_api.device_plugin.serving import ResourceServers, Served
from dra_driver.model.effects import Effects
from dra_driver.model.names import RESOURCE_COUNT
from dra_driver.model.pci import PciAddress

_KIND: Final = "count"

Cards = Callable[[], Collection[PciAddress] | None]


class CountHandler:
    """The `DeviceHandler` of the count: a device for each card that is there, whoever has it and
    whatever its health."""

    def __init__(self, cards: Cards) -> None:
        """`cards` gives None until they were read."""
        self._cards = cards

    def devices(self) -> Sequence[ListedDevice]:
        return [ListedDevice(str(address)) for address in sorted(self._cards() or ())]

    def prefer(
        self,
        available: Sequence[str],  # noqa: ARG002 (the port's signature)
        included: Sequence[str],  # noqa: ARG002 (the port's signature)
        size: int,  # noqa: ARG002 (the port's signature)
    ) -> Sequence[str]:
        """None: one is as good as another."""
        return ()

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:  # noqa: ARG002 (the port's signature)
        return ContainerEdits()


class CardCount:
    """Has the kubelet count the cards. Constructing it has no effect; `serve` may be called again
    and does nothing then."""

    def __init__(
        self, cards: Cards, *, kubelet_root: Path, pod_uid: str = "", effects: Effects | None = None
    ) -> None:
        self._cards = cards
        self._servers = ResourceServers(
            [Served(_KIND, RESOURCE_COUNT, CountHandler(cards))],
            folders=Folders.of(kubelet_root),
            pod_uid=pod_uid,
            patience=None,
            effects=effects or Effects(),
        )
        self.serves = False

    def serve(self) -> None:
        """Answer the kubelet, which hears of it once the cards were read; raises SocketError."""
        if not self.serves:
            self._servers.start()
            self.serves = True
            self.wake()

    def withdraw(self, grace: float) -> None:
        """Let running calls end within `grace` seconds. The kubelet keeps the capacity for five
        minutes, and lets nobody have any of it (``endpointStopGracePeriod``)."""
        if self.serves:
            self._servers.stop(grace)

    def wake(self) -> None:
        """The cards may have changed."""
        if self.serves:
            self._servers.notify()
            if self._cards() is not None:
                self._servers.announce()

    def is_alive(self) -> bool:
        """Whether what was started lives."""
        return not self.serves or self._servers.is_alive()
