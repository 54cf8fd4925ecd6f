"""What parts of the agent read from each other, whenever they need it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.card import Card
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger

LedgerSource = Callable[[], Ledger]
"""The ledger; raises JournalError."""

CardSource = Callable[[], Mapping[PciAddress, Card] | None]
"""The cards by address; None until they were read."""

DesiredSource = Callable[[Devices], Devices | None]
"""The devices to publish where the server has those; None while they are unknown. Raises
JournalError, and KubeError."""

DevicesSource = Callable[[], Devices]
"""All devices that the node offers; raises JournalError."""

ContainersSource = Callable[[], Collection[ContainerResources]]
"""The node's containers, by the kubelet's list; raises KubeletError."""
