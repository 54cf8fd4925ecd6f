"""Answers the kubelet's calls for one resource."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from dra_driver.device_plugin.allocator import Allocator
from dra_driver.device_plugin.inventory import NodeViewSource, inventories
from dra_driver.device_plugin.preference import Hints, prefer_share, prefer_whole
from dra_driver.kubelet_api.device_plugin.service import ContainerEdits, ListedDevice
from dra_driver.model.errors import JournalError
from dra_driver.model.mode import Mode
from dra_driver.util.hooks import OnChange

logger = logging.getLogger(__name__)


FindHints = Callable[[Mode, int], Hints]
"""The hints for `size` devices of `mode`. Does not raise, and may wait for seconds."""


@dataclass(slots=True, eq=False)
class ModeHandler:
    """The `DeviceHandler` of the resource for `mode`. `on_change` is called after each Allocate,
    before its answer."""

    mode: Mode
    _: KW_ONLY
    view: NodeViewSource
    allocator: Allocator
    on_change: OnChange
    hints: FindHints = lambda _mode, _size: ()
    _last: Sequence[ListedDevice] = field(init=False, default=())

    def devices(self) -> Sequence[ListedDevice]:
        """The devices as they are now, or as they last were if the journal cannot be read."""
        try:
            view = self.view()
        except JournalError as error:
            logger.warning("the kubelet gets the former list of devices: %s", error)
            return self._last
        self._last = [device for each in inventories(view, self.mode) for device in each.listed()]
        return self._last

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        """Binpack. Empty if the journal cannot be read: then the kubelet takes any devices."""
        hints = self.hints(self.mode, size)  # first, as it may wait
        try:
            view = self.view()
        except JournalError as error:
            logger.warning("no devices are preferred: %s", error)
            return ()
        found = inventories(view, self.mode)
        if self.mode is Mode.WHOLE:
            return prefer_whole(view.cards or {}, found, available, included, size, hints=hints)
        return prefer_share(found, available, included, size, hints=hints)

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        try:
            return self.allocator.allocate(self.mode, ids)
        finally:
            # Also after a failure: a started prepare that could not be undone may hold the card.
            self.on_change()
