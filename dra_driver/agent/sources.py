"""What parts of the agent read from each other, each time anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.model.card import Card
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger


class LedgerSource(Protocol):
    """The ledger; raises JournalError."""

    def __call__(self) -> Ledger: ...


class CardSource(Protocol):
    """The cards by address; None until they were read."""

    def __call__(self) -> Mapping[PciAddress, Card] | None: ...


class DesiredSource(Protocol):
    """The devices to publish of each card; None while they are unknown. Raises JournalError."""

    def __call__(self) -> Mapping[PciAddress, Devices] | None: ...


class DevicesSource(Protocol):
    """All devices that the node offers; raises JournalError."""

    def __call__(self) -> Devices: ...
