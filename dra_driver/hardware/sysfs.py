"""The machine's PCI tree in sysfs, below a host root.

The host root is ``/`` on a real node. Below another folder the same tree may be a simulated
machine; links are followed inside it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from dra_driver.model.card import DeviceNode
from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.names import PCI_VENDORS
from dra_driver.model.pci import PciAddress
from dra_driver.util.os_errors import OsErrorAs

_ACCELERATOR_CLASS = "0x1200"  # processing accelerator, whatever its programming interface
_MINOR = re.compile(r"gcu([0-9]{1,7})")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_NUMA_NODE = re.compile(r"[0-9]{1,4}")
# The folder below a PCI function is named after the driver's build: the vendor's, or Tencent's.
_DRIVER_FOLDERS = ("enflame", "zixiao")
_TICKS = 1_000_000_000  # nanoseconds: far more than a tick of the clock that stamps files


class GcuFunction(msgspec.Struct, frozen=True):
    """A GCU's PCI function. `bridges` are the PCI addresses from the root down to the card,
    itself left out; `minor` is None while the kernel driver has not taken the card."""

    address: PciAddress
    minor: int | None
    numa_node: int | None
    root: str | None
    bridges: tuple[str, ...]


class Sysfs:
    """Reads only. Every method says what is now; raises HardwareError for what it cannot read."""

    def __init__(self, host_root: Path) -> None:
        self._root = host_root
        self._devices = host_root / "sys/bus/pci/devices"
        self._listed: tuple[int | None, frozenset[str]] = (None, frozenset())

    def driver_version(self) -> str | None:
        """The version of the loaded kernel module; None where it is not loaded, or where its
        build has another name or tells no version."""
        return _read(self._root / "sys/module/enflame/version") or None

    def functions(self) -> tuple[GcuFunction, ...]:
        """Every GCU on the PCI bus, by address."""
        with _reading(self._devices, "mount the host's /sys, or set --host-root to where it is"):
            names = [entry.name for entry in self._devices.iterdir()]
            gcus = sorted(PciAddress.parse(name) for name in names if self._is_gcu(name))
            return tuple(self._function(address) for address in gcus)

    def minor(self, address: PciAddress, known: int | None = None) -> int | None:
        """The card's minor now, `known` where it is still that; None while the kernel driver has
        not taken the card. Raises HardwareError when the card is no longer on the bus."""
        folder = f"{self._devices}/{address}"  # no Path, as in `dra_driver.node.cdi.directory`
        if any(map(os.path.exists, (f"{folder}/{name}/gcu{known}" for name in _DRIVER_FOLDERS))):
            return known
        remedy = "look at the kernel log; the card may have fallen off or been removed"
        with _reading(folder, remedy):
            minor = self._minor(folder)
            if minor is not None or Path(folder).exists():
                return minor
        raise HardwareError(f"card {address} is gone from the PCI bus", remedy=remedy)

    def _minor(self, folder: Path | str) -> int | None:
        for name in _DRIVER_FOLDERS:
            for entry in sorted(_names(f"{folder}/{name}")):
                if match := _MINOR.fullmatch(entry):
                    return int(match[1])
        return None

    def nodes(self, minor: int) -> tuple[DeviceNode, ...]:
        """The device nodes that a container of this card needs, the card's own first.

        ``/dev/gcu<minor>``, each ``/dev/gcu<minor>vid*``, and ``/dev/gcuctl`` (vendor's plugin
        and dumps of its containers). Raises HardwareError when the card's own is missing.
        """
        dev = self._root / "dev"
        own, part = f"gcu{minor}", f"gcu{minor}vid"
        remedy = "mount the host's /dev, or let udev make the nodes of the GCU driver"
        with _reading(dev, remedy):
            there = self._in_dev(dev)
        if own not in there:
            raise HardwareError(f"device node {dev / own} does not exist", remedy=remedy)
        more = sorted(name for name in there if name.startswith(part))
        control = [name for name in ("gcuctl",) if name in there]
        return tuple(
            DeviceNode(path=f"/dev/{name}", host_path=f"{dev}/{name}")
            for name in (own, *more, *control)
        )

    def _in_dev(self, dev: Path) -> frozenset[str]:
        """What is in ``/dev``, listed again when its time has changed: while other threads run,
        each of hundreds of names costs a turn of the interpreter's lock."""
        changed = dev.stat().st_mtime_ns
        known_at, names = self._listed
        if changed != known_at:
            names = _names(dev)
            # A change within the same tick of the kernel's clock leaves the time as it is.
            is_settled = time.time_ns() - changed > _TICKS
            self._listed = (changed if is_settled else None, names)
        return names

    def _is_gcu(self, name: str) -> bool:
        folder = self._devices / name
        vendor = _read(folder / "vendor").removeprefix("0x")
        return (
            _is_address(name)
            and vendor in PCI_VENDORS
            and _read(folder / "class").startswith(_ACCELERATOR_CLASS)
        )

    def _function(self, address: PciAddress) -> GcuFunction:
        folder = self._devices / str(address)
        root, bridges = _ancestors(folder.resolve().parts[:-1])
        node = _read(folder / "numa_node")
        return GcuFunction(
            address=address,
            minor=self._minor(folder),
            numa_node=int(node) if _NUMA_NODE.fullmatch(node) else None,
            root=root,
            bridges=bridges,
        )


def _ancestors(parts: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The root complex (``pci0000:0a``), and the bridges above a function, top down.

    A volume management device has a PCI tree of its own below a function. The root is the outer one
    nevertheless, as Kubernetes' helper for drivers has it (deviceattribute, `resolvePCIeRoot`,
    1.37.2): devices of several drivers are compared by it. The bridges are those of the inner tree.
    """
    roots = [at for at, part in enumerate(parts) if _ROOT.fullmatch(part)]
    if not roots:
        return None, ()
    bridges = tuple(part for part in parts[roots[-1] + 1 :] if _is_address(part))
    return parts[roots[0]], bridges


def _is_address(text: str) -> bool:
    try:
        PciAddress.parse(text)
    except InvalidValue:
        return False
    return True


def _names(folder: Path | str) -> frozenset[str]:
    """What is in the folder; nothing where it does not exist."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(map(attrgetter("name"), entries))
    except FileNotFoundError:
        return frozenset()


def _read(path: Path) -> str:
    """A sysfs attribute, stripped; empty where the function does not have it."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _reading(path: Path | str, remedy: str) -> OsErrorAs:
    """A card may fall off the bus at any moment, also while its folder is read."""
    return OsErrorAs(HardwareError, "the folder", path, remedy=remedy)
