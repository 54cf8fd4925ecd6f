"""Taints cards that deleted claims still hold, so that new claims get other cards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.sources import DesiredSource
from dra_driver.model.devices.device import taint
from dra_driver.model.names import TAINT_HELD
from dra_driver.model.pci import PciAddress

DELETED_CLAIM: Final = "deleted-claim"
"""The taint's value."""


@dataclass(frozen=True, slots=True)
class HeldTaints:
    """The devices of `source`, with the taint ``held`` on all devices of the cards that `held`
    returns. Its effect is NoSchedule: pods that use the card otherwise stay. It may raise
    JournalError."""

    source: DesiredSource
    held: Callable[[], Collection[PciAddress]]

    def __call__(self) -> Mapping[PciAddress, Devices] | None:
        """Raises JournalError, and KubeError."""
        wanted, held = self.source(), self.held()
        if wanted is None or not held:
            return wanted
        new = taint(TAINT_HELD, DELETED_CLAIM)
        return {
            card: [device | {"taints": [*device["taints"], new]} for device in devices]
            if card in held
            else devices
            for card, devices in wanted.items()
        }
