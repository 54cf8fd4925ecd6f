"""Cards to describe devices with, and their addresses."""

from __future__ import annotations

from hypothesis import strategies as st

from dra_driver.model.card import Card, DeviceNode, Ecc, Problem, Readings, Virtualization
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress

addresses = st.builds(
    PciAddress,
    domain=st.integers(0, 2**32 - 1),
    bus=st.integers(0, 255),
    device=st.integers(0, 31),
    function=st.integers(0, 7),
)

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

OTHER = Card(
    address=PciAddress(0, 0x2D, 0, 0),
    index=5,
    minor=7,
    model="S90",
    uuid="TPUA20000009",
    memory_mib=49152,
    driver_version="1.6.0",
    ecc=Ecc(current=False, pending=False),
    virtualization=Virtualization.DRS,
    numa_node=2,
    pcie_root="pci0000:2a",
    pcie_bridges=("0000:2a:01.0", "0000:2b:00.0", "0000:2c:00.0"),
    nodes=(DeviceNode("/dev/gcu7", "/dev/gcu7"),),
    problems=(Problem(TAINT_UNHEALTHY, "rma", "flagged"),),
    errors=9,
    missing_nodes=("/dev/gcuctl",),
    readings=Readings(91.0, 250.0, 7),
)
"""A card with another value in each field, and the tests that use it fail for a field without."""
