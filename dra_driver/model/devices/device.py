"""What of a card stands in a ResourceSlice: names of devices, and the whole-card device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from dra_driver.model import names
from dra_driver.model.card import Card
from dra_driver.model.devices.topology import format_bridges
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.quantity import format_binary

_NAME = re.compile(r"(whole|shared|drs|admin)-([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])")
_ONE_CARD = {"card": {"value": "1"}}
# An API server from 1.38 on refuses slices with longer ones (1.38.0-beta.0, `numericIdentifier` of
# pkg/apis/resource/validation), as CEL compares versions as int64.
_NUMBER: Final = "([0-9]{1,18})"
_VERSION: Final = re.compile(rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?![0-9])(.*)", re.DOTALL)
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z]+(?:-+[0-9A-Za-z]+)*")


def device_name(mode: Mode, address: PciAddress) -> str:
    """The device's name, from the PCI address: an index may point to another card after a boot."""
    return f"{mode.value}-{address.slug}"


# Most nodes of a cluster have devices of the same names, and a node has a few dozen.
@lru_cache(4096)
def parse_device_name(name: str) -> tuple[Mode, PciAddress]:
    """The mode and card that a device's name stands for; raises InvalidValue for any other name.
    Administrators see a whole card by their device."""
    if match := _NAME.fullmatch(name):
        kind, domain, bus, device, function = match.groups()
        try:
            address = PciAddress.parse(f"{domain}:{bus}:{device}.{function}")
        except InvalidValue:
            pass
        else:
            # A second spelling of one address would be a second device of one card.
            if f"{kind}-{address.slug}" == name:
                return Mode.WHOLE if kind == names.TYPE_ADMIN else Mode(kind), address
    raise InvalidValue(f"device {name!r} is not one that this driver publishes")


def is_admin_device(name: str) -> bool:
    """Whether the device of that name is for administrative access alone: see `admin_device`."""
    return name.startswith(f"{names.TYPE_ADMIN}-")


def whole_device(card: Card, *, allocator: str, sips: int | None = None) -> dict[str, Any]:
    """The card as one device of a ResourceSlice (resource.k8s.io/v1).

    `allocator` is ``controller`` or ``scheduler``, see `exclusion`. `sips` is how many the card
    has, if a profile table says so.
    """
    memory = {"value": format_binary(card.memory_mib * 2**20)}
    device = card_device(card, Mode.WHOLE, allocator=allocator, sips=sips)
    return device | {"capacity": {names.CAPACITY_MEMORY: memory}}


def admin_device(card: Card, *, sips: int | None = None) -> dict[str, Any]:
    """The card for claims with ``adminAccess``, where kube-scheduler allocates.

    It consumes no counter: kube-scheduler wants counters to be free even for administrative access
    (kubernetes#140729). The taint keeps all claims away that do not tolerate it.
    """
    device = whole_device(card, allocator=names.ALLOCATOR_CONTROLLER, sips=sips)
    device["name"] = f"{names.TYPE_ADMIN}-{card.address.slug}"
    device["attributes"][names.ATTR_TYPE] = {"string": names.TYPE_ADMIN}
    device["taints"] = [taint(names.TAINT_ADMINISTRATORS, ""), *_problem_taints(card)]
    return device


def card_device(card: Card, mode: Mode, *, allocator: str, sips: int | None) -> dict[str, Any]:
    """The card's device for that mode, without a capacity."""
    return {
        "name": device_name(mode, card.address),
        "attributes": card_attributes(card, mode, sips=sips),
        **exclusion(card, allocator=allocator),
    }


def card_attributes(card: Card, mode: Mode, *, sips: int | None = None) -> dict[str, Any]:
    """The attributes that a card's devices have in common, as the API writes them."""
    told = (
        (names.ATTR_TYPE, "string", mode.value),
        (names.ATTR_CARD, "string", str(card.address)),
        (names.ATTR_MODEL, "string", attribute_text(card.model)),
        (names.ATTR_UUID, "string", attribute_text(card.uuid)),
        (names.ATTR_MEMORY_MIB, "int", card.memory_mib),
        (names.ATTR_PCI_BUS_ID, "string", str(card.address)),
        (names.ATTR_DRIVER_VERSION, "version", _semantic_version(card.driver_version)),
        (names.ATTR_PCIE_SWITCH, "string", card.pcie_switch),
        (names.ATTR_PCIE_BRIDGES, "string", format_bridges(card.pcie_bridges) or None),
        (names.ATTR_PCIE_ROOT, "string", card.pcie_root),
        (names.ATTR_NUMA_NODE, "int", card.numa_node),
        (names.ATTR_SIPS, "int", sips),
    )
    return {name: {kind: value} for name, kind, value in told if value is not None}


def exclusion(card: Card, *, allocator: str) -> dict[str, Any]:
    """The fields of a device that keep claims away from it.

    ``taints``: one for each problem of the card, and ``allocated-by=controller`` if the controller
    allocates, which keeps kube-scheduler away. If kube-scheduler allocates, ``consumesCounters``
    has the mode exclusion: each device of the card consumes the card's only counter, and a device
    that many claims share consumes it once (resource.k8s.io/v1, DeviceCounterConsumption).
    """
    found = _problem_taints(card)
    if allocator == names.ALLOCATOR_CONTROLLER:
        return {"taints": [taint(names.TAINT_ALLOCATED_BY, allocator), *found]}
    consumed = {"counterSet": card.address.slug, "counters": _ONE_CARD}
    return {"taints": found, "consumesCounters": [consumed]}


def _problem_taints(card: Card) -> list[dict[str, str]]:
    problems = sorted({(each.taint, each.value, each.evicts) for each in card.problems})
    return [taint(key, value, evicts=evicts) for key, value, evicts in problems]


def taint(key: str, value: str, *, evicts: bool = False) -> dict[str, str]:
    """A DeviceTaint: NoSchedule, or NoExecute where it `evicts`; without a value where empty."""
    effect = "NoExecute" if evicts else "NoSchedule"
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def attribute_text(text: str) -> str:
    """The start of the text that a string attribute holds: 64 bytes."""
    return text.encode()[: names.ATTRIBUTE_BYTES].decode(errors="ignore")


def counter_sets(devices: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The counter sets that the devices consume (resource.k8s.io/v1, CounterSet): one for each
    card, none for devices that the controller allocates."""
    consumed = {
        each["counterSet"]: each["counters"]
        for device in devices
        for each in device.get("consumesCounters", ())
    }
    return [{"name": name, "counters": consumed[name]} for name in sorted(consumed)]


def _semantic_version(text: str) -> str | None:
    """As attributes of the type `version` have it (semver.org 2.0.0): three numbers, and what
    follows them as build metadata, by which versions are not ordered (``1.4.0.3`` → ``1.4.0+3``).
    The metadata is cut where the whole would have more than 64 characters. None where the text does
    not begin with three numbers, or with numbers that are too large."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    version = ".".join(str(int(each)) for each in match.groups()[:3])
    metadata = ".".join(_IDENTIFIER.findall(match[4]))
    metadata = metadata[: names.ATTRIBUTE_BYTES - len(version) - 1].rstrip(".-")
    return f"{version}+{metadata}" if metadata else version
