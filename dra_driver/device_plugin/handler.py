"""What the kubelet asks of one resource, answered from the node as it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from dra_driver.device_plugin.allocator import Allocator
from dra_driver.device_plugin.inventory import NodeView, inventories
from dra_driver.device_plugin.preference import Hints, prefer_share, prefer_whole
from dra_driver.kubelet_api.device_plugin.handler import ContainerEdits, ListedDevice
from dra_driver.model.errors import JournalError
from dra_driver.model.mode import Mode

logger = logging.getLogger(__name__)


class ModeHandler:
    """The `DeviceHandler` of the resource that stands for `mode`; `changed` is called when devices
    were given out, before the kubelet is told so."""

    def __init__(
        self,
        mode: Mode,
        *,
        view: Callable[[], NodeView],
        allocator: Allocator,
        changed: Callable[[], None],
        hints: Callable[[Mode, int], Hints] = lambda _mode, _size: (),
    ) -> None:
        """`hints` does not raise, and may wait for seconds."""
        self._mode = mode
        self._view = view
        self._allocator = allocator
        self._changed = changed
        self._hints = hints
        self._last: Sequence[ListedDevice] = ()

    def devices(self) -> Sequence[ListedDevice]:
        """As they are; as they were last where the journal cannot be read."""
        try:
            view = self._view()
        except JournalError as error:
            logger.warning("the kubelet is told of the devices of before: %s", error)
            return self._last
        self._last = [device for each in inventories(view, self._mode) for device in each.listed()]
        return self._last

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        """Binpack; none where the journal cannot be read: then the kubelet takes any devices."""
        hints = self._hints(self._mode, size)  # first, as it may wait
        try:
            view = self._view()
        except JournalError as error:
            logger.warning("no devices are preferred: %s", error)
            return ()
        found = inventories(view, self._mode)
        if self._mode is Mode.WHOLE:
            return prefer_whole(view.cards or {}, found, available, included, size, hints=hints)
        return prefer_share(found, available, included, size, hints=hints)

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        try:
            return self._allocator.allocate(self._mode, ids)
        finally:
            # Where it failed, an intent that could not be undone may hold the card.
            self._changed()
