"""What the machine shows in its file system: sysfs, device nodes. Pure: state in, files out.

Paths are relative to the machine's root. ``sys/bus/pci/devices/<bdf>`` links into
``sys/devices/pci…/<bridge>/<bdf>``, as the kernel has it, so that the real path of a card tells
its switch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Final

from dra_driver.simulator.state import CardState, MachineState

# Device numbers: a card has its minor (Linux numbers it so in gcu<minor>/dev); those of the
# other nodes are not public, and chosen so that they cannot meet.
CONTROL_MINOR: Final = 255
_VIDEO_MINORS: Final = 256
_VIDEO_NODES_MAX: Final = 16

_BRIDGE: Final = {
    "vendor": "0x10b5",
    "device": "0x8796",
    "class": "0x060400",
    "numa_node": "-1",
    "local_cpulist": "",
}


@dataclass(frozen=True, slots=True)
class File:
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    target: str


@dataclass(frozen=True, slots=True)
class TreeDeviceNode:
    """A character device, or an empty file where the machine has plain files for them."""

    major: int
    minor: int
    char: bool


Node = File | Link | TreeDeviceNode


def tree(machine: MachineState) -> dict[str, Node]:
    """Everything below ``sys`` and ``dev``, by path. Lost cards are not in it; without the
    kernel driver the PCI devices are, but neither its folders nor its device nodes."""
    nodes: dict[str, Node] = {}
    if machine.driver_loaded:
        nodes["sys/module/enflame/version"] = File(f"{machine.driver_version}\n")
        nodes["dev/gcuctl"] = TreeDeviceNode(
            machine.char_major, CONTROL_MINOR, machine.char_devices
        )
    for card in machine.cards:
        if not card.lost:
            nodes.update(_card(machine, card))
    return nodes


def _card(machine: MachineState, card: CardState) -> Iterator[tuple[str, Node]]:
    for bridge in list(accumulate(card.pci_path.split("/"), lambda top, part: f"{top}/{part}"))[1:]:
        yield from _pci_device(bridge, _BRIDGE)
    folder = f"{card.pci_path}/{card.bdf}"
    yield from _pci_device(
        folder,
        {
            "vendor": f"0x{card.vendor_id}",
            "device": f"0x{card.device_id}",
            "class": "0x120000",
            "numa_node": str(card.numa_node),
            "local_cpulist": card.cpu_affinity,
        },
    )
    if not machine.driver_loaded:
        return
    number = File(f"{machine.char_major}:{card.minor}\n")
    yield f"sys/devices/{folder}/{machine.driver_directory}/gcu{card.minor}/dev", number
    name = f"dev/gcu{card.minor}"
    yield name, TreeDeviceNode(machine.char_major, card.minor, machine.char_devices)
    for video in range(card.video_nodes):
        minor = _VIDEO_MINORS + card.minor * _VIDEO_NODES_MAX + video
        yield f"{name}vid{video}", TreeDeviceNode(machine.char_major, minor, machine.char_devices)


def _pci_device(folder: str, files: dict[str, str]) -> Iterator[tuple[str, Node]]:
    name = PurePosixPath(folder).name
    yield f"sys/bus/pci/devices/{name}", Link(f"../../../devices/{folder}")
    for file, text in files.items():
        yield f"sys/devices/{folder}/{file}", File(f"{text}\n")
