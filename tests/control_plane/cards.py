"""A card as the agent reads it, and the devices that it is published as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dra_driver.model.card import Card, Ecc
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import admin_device, whole_device
from dra_driver.model.devices.device_shares import drs_device, shared_device
from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile, ProfileTable


def card(bus: int, root: str = "pci0000:00") -> Card:
    return Card(
        address=PciAddress(0, bus, 0, 0),
        index=0,
        minor=0,
        model="S60",
        uuid=f"TPUA100000{bus:02}",
        memory_mib=42976,
        driver_version="1.5.20260710",
        ecc=Ecc(current=True, pending=True),
        virtualization=None,
        numa_node=0,
        pcie_root=root,
        pcie_bridges=("0000:00:01.0", "0000:02:00.0", "0000:03:00.0"),
        nodes=(),
    )


def table(*sizes: int) -> ProfileTable:
    """A card of twelve, cut into instances of these sizes."""
    return ProfileTable.of(Profile(f"{n}g.{7 * n}gb", n, 12 // n, 7000 * n, 4 * n) for n in sizes)


def in_all_modes(
    *buses: int,
    allocator: str = ALLOCATOR_CONTROLLER,
    root: Callable[[int], str] = lambda _: "pci0000:00",
    **fields: Any,
) -> list[Object]:
    """The devices of these cards: whole, six slices, instances of 1, 3 and 6. `root` is the PCIe
    root of a bus; `fields` are those of `Card` in which the cards differ from `card`."""
    return [
        device
        for each in (replace(card(bus, root(bus)), **fields) for bus in buses)
        for device in (
            whole_device(each, allocator=allocator, sips=24),
            shared_device(each, 6, allocator=allocator, sips=24),
            drs_device(each, table(1, 3, 6), allocator=allocator),
            *([admin_device(each, sips=24)] if allocator == ALLOCATOR_SCHEDULER else []),
        )
    ]
