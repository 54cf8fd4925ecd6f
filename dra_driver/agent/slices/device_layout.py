"""Cards → devices, and how a card's layout changes while claims use the card. Pure.

A card's layout is its devices and their capacities. Allocations are counted by it, so it stays
while any claim uses the card.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.inventory import granted_total
from dra_driver.model.card import Card, Problem
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import (
    admin_device,
    device_name,
    is_admin_device,
    parse_device_name,
    taint,
    whole_device,
)
from dra_driver.model.devices.device_shares import drs_device, shared_device
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    CAPACITY_SLICES,
    TAINT_ALLOCATED_BY,
    TAINT_CHANGING,
    TAINT_UNHEALTHY,
    TAINTS_OF_CLAIMS,
)
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import ProfileTable
from dra_driver.node.checkpoint.ledger import Ledger

Devices = Sequence[Object]

DevicesSource = Callable[[], Devices]
"""All devices that the node offers; raises JournalError."""


def card_devices(
    card: Card, offer: CardConfig, table: ProfileTable | None, allocator: str
) -> Devices:
    """The devices of a card that no claim uses; no `drs` device while its profiles are unknown."""
    sips = table.sips if table is not None else None
    devices = []
    if Mode.WHOLE in offer.modes:
        devices.append(whole_device(card, allocator=allocator, sips=sips))
        if allocator == ALLOCATOR_SCHEDULER:
            devices.append(admin_device(card, sips=sips))
    if Mode.SHARED in offer.modes:
        devices.append(shared_device(card, offer.slice_count, allocator=allocator, sips=sips))
    if Mode.DRS in offer.modes and table is not None:
        devices.append(drs_device(card, table, allocator=allocator))
    return devices


def with_layouts_in_use(
    wanted: Mapping[PciAddress, Devices],
    published: Devices,
    held: frozenset[PciAddress],
    *,
    evict: Collection[str] = (),
    unread: Collection[PciAddress] = (),
) -> list[Object]:
    """The devices to publish, if `published` are on the API server, claims use the cards `held`,
    and the cards that are present should have the devices `wanted`.

    A card in use keeps its published layout: with the taint ``changing`` if another layout is
    wanted, with ``unhealthy=lost`` if the card is missing, and with ``unhealthy=efsmi`` if it is
    one of the cards on the bus that are `unread`. Upstream computes what is allocated from the
    present slices (kubernetes#140802), so an allocated device must not leave them. A layout
    without counters also keeps the taint ``allocated-by``: kube-scheduler must not allocate a
    second mode of the card. `evict` has the values of taints for which pods must leave.
    """
    result = dict(wanted)
    for card, old in _by_card(published).items():
        if card not in held:
            continue
        if card not in wanted:
            value = "efsmi" if card in unread else "lost"
            unhealthy = taint(TAINT_UNHEALTHY, value, evicts=value in evict)
            result[card] = [tainted(each, unhealthy) for each in old]
        elif _changes(old, wanted[card]):
            changing = taint(TAINT_CHANGING, "")
            taints = {each["name"]: each["taints"] for each in wanted[card]}
            # A device that is to disappear gets the taints of the others.
            common = next(iter(taints.values()), None)
            result[card] = [
                tainted(_with_taints(each, taints.get(each["name"], common)), changing)
                for each in old
            ]
    devices = [each for devices in result.values() for each in devices]
    return sorted(devices, key=_place)


def as_published(published: Devices, problem: Problem) -> dict[PciAddress, Devices]:
    """The published devices of each card, with the taint of that problem added."""
    new = taint(problem.taint, problem.value, evicts=problem.evicts)
    return {
        card: [tainted(each, new) for each in devices]
        for card, devices in _by_card(published).items()
    }


def slice_count(devices: Devices, card: PciAddress) -> int | None:
    """The card's number of slices as published; None if it has no shared device."""
    name = device_name(Mode.SHARED, card)
    for device in devices:
        if device["name"] == name:
            return int(device["capacity"][CAPACITY_SLICES]["value"])
    return None


def slice_total(ledger: Ledger, card: PciAddress, *, published: int | None, rule: int) -> int:
    """While the device plugin has given slices of the card to containers, the number by which it
    counted them. Otherwise the `published` number, by which the allocator counts, or the number
    that was promised to claims, if that is larger: after a start only the latter is known. A card
    that is neither published nor in use is cut by the `rule`."""
    promised = ledger.promised_slices(card)
    known = [total for total in (published, promised) if total is not None]
    return granted_total(ledger, card, Mode.SHARED) or max(known, default=rule)


def by_name(devices: Iterable[Object]) -> Iterator[tuple[PciAddress, Mode, Object]]:
    """Each device with the card and the mode that its name says; without those for administrative
    access, which has no mode, and those that another version of the driver published under other
    names."""
    for card, mode, device in _parsed(devices):
        if not is_admin_device(device["name"]):
            yield card, mode, device


def _parsed(devices: Iterable[Object]) -> Iterator[tuple[PciAddress, Mode, Object]]:
    for device in devices:
        try:
            mode, card = parse_device_name(device["name"])
        except InvalidValue:
            continue
        yield card, mode, device


def _place(device: Object) -> tuple[int, int, str]:
    """Devices by their names. kube-scheduler takes the first device that fits, so it gets whole
    cards after the others and from the other end: then shares and instances fill few cards. Those
    for administrative access come last."""
    if is_admin_device(device["name"]):
        return 2, 0, str(device["name"])
    if not device.get("consumesCounters"):
        return 0, 0, str(device["name"])
    mode, card = parse_device_name(device["name"])
    order = int(card.slug.replace("-", ""), 16)
    return (1, -order, "") if mode is Mode.WHOLE else (0, 0, str(device["name"]))


def _with_taints(device: Object, taints: Sequence[Object] | None) -> Object:
    """The device with the `taints`; with its own ones if they are None."""
    if taints is None:
        return device
    is_schedulers = bool(device.get("consumesCounters")) or is_admin_device(device["name"])
    if not is_schedulers and all(each["key"] != TAINT_ALLOCATED_BY for each in taints):
        taints = [taint(TAINT_ALLOCATED_BY, ALLOCATOR_CONTROLLER), *taints]
    return device | {"taints": list(taints)}


def _by_card(devices: Devices) -> dict[PciAddress, list[Object]]:
    found: dict[PciAddress, list[Object]] = {}
    for card, _, each in _parsed(devices):
        found.setdefault(card, []).append(each)
    return found


def _changes(old: Devices, new: Devices) -> bool:
    """Whether a device disappears or what it is counted by changes. A device may be added, and
    attributes may change, while claims use the card."""
    counted = {each["name"]: _counted(each) for each in new}
    return any(counted.get(each["name"]) != _counted(each) for each in old)


def _counted(device: Object) -> tuple[Any, ...]:
    return (
        device.get("capacity"),
        device.get("allowMultipleAllocations"),
        device.get("consumesCounters"),
    )


def problem_taints(device: Object) -> list[Object]:
    """The device's taints that say what is wrong with it."""
    return [each for each in device.get("taints") or () if each["key"] not in TAINTS_OF_CLAIMS]


def tainted(device: Object, taint: Object) -> Object:
    """The device with that taint instead of others with its key; the server sets new times."""
    others = [
        {name: content for name, content in each.items() if name != "timeAdded"}
        for each in device.get("taints", ())
        if each["key"] != taint["key"]
    ]
    return device | {"taints": [*others, taint]}
