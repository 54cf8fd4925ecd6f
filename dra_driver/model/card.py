"""A card as the machine describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import msgspec

from dra_driver.model.devices.topology import CardPlace, format_bridges
from dra_driver.model.pci import PciAddress


class Virtualization(StrEnum):
    """What efsmi's summary says under ``GCU Virt``."""

    DISABLED = "Disable"
    DRS = "DRS"
    SRIOV = "SRIOV"


class Ecc(msgspec.Struct, frozen=True):
    """ECC now and after the next reset; they differ while a change waits for a reset."""

    current: bool
    pending: bool


UNHEALTHY_VALUES: Final = ("lost", "health", "rma", "errors", "efsmi", "pending")


class Problem(msgspec.Struct, frozen=True):
    """Why nothing new may be placed on a card: the key and value of the taint that says so to
    programs, and `text` that says it to people.

    The key ``unhealthy`` takes one of `UNHEALTHY_VALUES`; ``foreign`` has no value. `evicts` makes
    pods leave that use the card.
    """

    taint: str
    value: str
    text: str
    evicts: bool = False


class DeviceNode(msgspec.Struct, frozen=True):
    """A character device of a card: ``path`` as a container of the node sees it (``/dev/gcu0``),
    ``host_path`` as the container runtime finds it (differs on a simulated node only)."""

    path: str
    host_path: str


class Readings(msgspec.Struct, frozen=True):
    """What a card measures of itself, by efsmi: degrees Celsius, watts, MiB. None where this
    version does not print it, prints ``N/A``, or what is printed is not understood."""

    temperature: float | None = None
    power: float | None = None
    memory_used_mib: int | None = None


NO_READINGS: Final = Readings()


@dataclass(frozen=True, slots=True)
class Card:
    """One GCU card, joined from sysfs and efsmi by its full PCI address.

    ``index`` (efsmi's) and ``minor`` (of ``/dev/gcu<minor>``) can disagree and both may change
    at a reboot: never use them as a key. ``memory_mib`` is the card's total as efsmi prints it.
    ``numa_node`` is None where the kernel says -1. ``pcie_bridges`` are the PCI addresses of the
    bridges above the card, from the root complex ``pcie_root`` down. ``virtualization`` is None
    where efsmi does not tell, ``errors`` its count of error records. ``missing_nodes`` are the
    paths of device nodes that cards of its kind have had, and that it has not now. ``readings``
    are those of the last inventory; a card that differs in them alone is the same card.
    """

    address: PciAddress
    index: int
    minor: int
    model: str
    uuid: str
    memory_mib: int
    driver_version: str
    ecc: Ecc | None
    virtualization: Virtualization | None
    numa_node: int | None
    pcie_root: str | None
    pcie_bridges: tuple[str, ...]
    nodes: tuple[DeviceNode, ...]
    problems: tuple[Problem, ...] = ()
    errors: int | None = None
    missing_nodes: tuple[str, ...] = ()
    readings: Readings = field(default=NO_READINGS, compare=False)

    @property
    def pcie_switch(self) -> str | None:
        """The card's own nearest switch, by its upstream port: the second bridge above the card,
        the first one being the downstream port. None where the card is below a root port."""
        return self.pcie_bridges[-2] if len(self.pcie_bridges) > 1 else None

    def with_problem(self, problem: Problem) -> Card:
        return replace(self, problems=(*self.problems, problem))

    @property
    def place(self) -> CardPlace:
        """As those find it who know the card by what is published."""
        return CardPlace.of(
            bridges=format_bridges(self.pcie_bridges),
            root=self.pcie_root or "",
            numa=self.numa_node,
        )


Cards = Mapping[PciAddress, Card]
"""By their addresses."""
