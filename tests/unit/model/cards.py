"""A card to describe devices with."""

from __future__ import annotations

from dra_driver.model.card import Card, DeviceNode, Ecc, Virtualization
from dra_driver.model.pci import PciAddress

CARD = Card(
    address=PciAddress(0, 0x0D, 0, 0),
    index=4,
    minor=3,
    model="S60",
    uuid="TPUA10000001",
    memory_mib=42976,
    driver_version="1.5.20260710",
    ecc=Ecc(current=True, pending=True),
    virtualization=Virtualization.DISABLED,
    numa_node=1,
    pcie_root="pci0000:0a",
    pcie_bridges=("0000:0a:01.0", "0000:0b:00.0", "0000:0c:00.0"),
    nodes=(DeviceNode("/dev/gcu3", "/dev/gcu3"),),
)
