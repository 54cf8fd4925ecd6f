"""The device plugin: serves three resources, and releases the devices of ended containers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field

from dra_driver.device_plugin.allocator import Allocator, TakesCdiNames
from dra_driver.device_plugin.garbage_collector import DeviceSets, GarbageCollector
from dra_driver.device_plugin.inventory import NodeViewSource, inventories
from dra_driver.device_plugin.node_pods import NodePods
from dra_driver.device_plugin.preference import (
    Hints,
    find_hints,
    is_requested,
    prefer_share,
    prefer_whole,
)
from dra_driver.kubelet_api.device_plugin.record import KubeletRecord, Recorded, known_checkpoint
from dra_driver.kubelet_api.device_plugin.service import ContainerEdits, ListedDevice
from dra_driver.kubelet_api.device_plugin.serving import ResourceServers
from dra_driver.kubelet_api.sockets import Folders
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.model.errors import JournalError
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.ports import Hardware
from dra_driver.util.hooks import OnChange

logger = logging.getLogger(__name__)


Measure = Callable[[str], AbstractContextManager[object]]
"""What surrounds each Allocate of a resource, to measure it."""


FindHints = Callable[[Mode, int], Hints]
"""The hints for `size` devices of `mode`. Does not raise, and may wait for seconds."""


@dataclass(slots=True, eq=False)
class ModeHandler:
    """The `DeviceHandler` of the resource for `mode`. `on_change` is called after each Allocate,
    before its answer."""

    mode: Mode
    _: KW_ONLY
    allocator: Allocator
    on_change: OnChange
    hints: FindHints
    measure: Measure
    _last: Sequence[ListedDevice] = field(init=False, default=())

    def devices(self) -> Sequence[ListedDevice]:
        """The devices as they are now, or as they last were if the journal cannot be read."""
        try:
            view = self.allocator.view()
        except JournalError as error:
            logger.warning("the kubelet gets the former list of devices: %s", error)
            return self._last
        self._last = [device for each in inventories(view, self.mode) for device in each.listed()]
        return self._last

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        """Binpack. Empty if the journal cannot be read: then the kubelet takes any devices."""
        hints = self.hints(self.mode, size)  # first, as it may wait
        try:
            view = self.allocator.view()
        except JournalError as error:
            logger.warning("no devices are preferred: %s", error)
            return ()
        found = inventories(view, self.mode)
        if self.mode is Mode.WHOLE:
            return prefer_whole(view.cards or {}, found, available, included, size, hints=hints)
        return prefer_share(found, available, included, size, hints=hints)

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        with self.measure(RESOURCES[self.mode]):
            try:
                return self.allocator.allocate(self.mode, ids)
            finally:
                # Also after a failure: a started prepare that could not be undone may hold the
                # card.
                self.on_change()


class DevicePlugin(ResourceServers):
    """Serves the cards of `view`. `on_change` is called when devices were given to a container, or
    released, and has to call `notify`."""

    def __init__(
        self,
        *,
        view: NodeViewSource,
        claim_manager: PreparedClaimManager,
        hardware: Hardware,
        takes_cdi_names: TakesCdiNames,
        on_change: OnChange,
        node_name: str,
        folders: Folders,
        release_interval: float = 10.0,
        register_after: float = 0.0,
        pods: NodePods | None = None,
        measure: Measure = nullcontext,
        effects: Effects = NO_FAULTS,
    ) -> None:
        """`pods` are the node's. The others as of `ResourceServers`."""
        self._pods = pods or NodePods()
        self._checkpoint = folders.checkpoint
        self._record = KubeletRecord(folders, send_list=self.notify)
        allocator = Allocator(
            view=view,
            claim_manager=claim_manager,
            hardware=hardware,
            recorded=lambda: device_sets(self._record.checkpoint()),
            pool=pool_name(node_name),
            takes_cdi_names=takes_cdi_names,
        )
        handlers = {
            RESOURCES[mode]: ModeHandler(
                mode,
                allocator=allocator,
                on_change=on_change,
                hints=self._hints,
                measure=measure,
            )
            for mode in Mode
        }
        super().__init__(handlers, folders=folders, register_after=register_after, effects=effects)
        self._garbage_collector = GarbageCollector(
            view=view,
            claim_manager=claim_manager,
            still_in_use=self._still_in_use,
            on_change=on_change,
            interval=release_interval,
        )

    def serve(self) -> None:
        super().serve()
        self._garbage_collector.start()

    def stop(self, timeout: float) -> None:
        """Containers and their devices stay."""
        self._garbage_collector.stop(timeout)
        super().stop(timeout)

    def ended(self) -> str | None:
        return super().ended() or self._garbage_collector.ended()

    def problem(self) -> str | None:
        """Why no device can be allocated, or none released; None if all is well."""
        return super().problem() or self._garbage_collector.problem

    def _hints(self, mode: Mode, size: int) -> Hints:
        recorded = known_checkpoint(self._checkpoint)
        # On a busy node the kubelet's watch often delivers a pod before the agent's, and only the
        # pod says for which cards it was placed.
        if not self._pods.wait_for(lambda pods: is_requested(pods, recorded, mode, size)):
            logger.info(
                "no pod of this node is known that requests %d devices of %s", size, RESOURCES[mode]
            )
        return find_hints(self._pods.waiting(), recorded, mode, size)

    def _still_in_use(self, devices: DeviceSets) -> DeviceSets:
        found = [each for each in self._record.read() if each.devices in devices]
        return device_sets(self._pods.without_ended(found))


def device_sets(recorded: Iterable[Recorded]) -> DeviceSets:
    """The recorded devices of this driver's resources."""
    resources = set(RESOURCES.values())
    return {each.devices for each in recorded if each.resource in resources}
