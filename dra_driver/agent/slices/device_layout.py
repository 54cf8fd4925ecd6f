"""Cards → devices, and how a card changes its form while claims hold it. Pure.

A card's form is its devices and their capacities. Claims are counted by it, so it stays while any
claim holds something of the card.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dra_driver.config.card_rules import CardConfig
from dra_driver.model.card import Card, Problem
from dra_driver.model.claim import Object
from dra_driver.model.device import device_name, parse_device_name, taint, whole_device
from dra_driver.model.device_shares import drs_device, shared_device
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    CAPACITY_SLICES,
    TAINT_CHANGING,
    TAINT_UNHEALTHY,
)
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import ProfileTable

Devices = Sequence[Object]


def card_devices(
    card: Card, offer: CardConfig, table: ProfileTable | None, allocator: str
) -> Devices:
    """The devices of a card that nobody holds; no `drs` device while its profiles are unknown."""
    sips = table.sips if table is not None else None
    devices = []
    if Mode.WHOLE in offer.modes:
        devices.append(whole_device(card, allocator=allocator, sips=sips))
    if Mode.SHARED in offer.modes:
        devices.append(shared_device(card, offer.slice_count, allocator=allocator, sips=sips))
    if Mode.DRS in offer.modes and table is not None:
        devices.append(drs_device(card, table, allocator=allocator))
    return devices


def with_held_forms(
    wanted: Mapping[PciAddress, Devices],
    published: Devices,
    held: frozenset[PciAddress],
    *,
    evict: Collection[str] = (),
) -> list[Object]:
    """What to publish where `published` stands, claims hold the cards `held`, and the cards that
    are there shall be `wanted`.

    A held card whose form is to change keeps the published one, with a taint that lets nothing
    new in; so does one that is not there at all, tainted as lost: upstream computes what is used
    from the slices of now (kubernetes#140802), so a device that is allocated must not leave them.
    `evict` are the values of taints that make pods leave.
    """
    lost = taint(TAINT_UNHEALTHY, "lost", evicts="lost" in evict)
    result = dict(wanted)
    for card, old in _by_card(published).items():
        if card not in held:
            continue
        if card not in wanted:
            result[card] = [_tainted(each, lost) for each in old]
        elif _changes(old, wanted[card]):
            changing = taint(TAINT_CHANGING, "")
            taints = {each["name"]: each["taints"] for each in wanted[card]}
            # Those of a device that is to go are its card's.
            common = next(iter(taints.values()), None)
            result[card] = [
                _tainted(
                    each | {"taints": taints.get(each["name"], common or each["taints"])}, changing
                )
                for each in old
            ]
    devices = [each for devices in result.values() for each in devices]
    return sorted(devices, key=lambda each: str(each["name"]))


def as_published(published: Devices, problem: Problem) -> dict[PciAddress, Devices]:
    """The devices of each card as they stand, with that problem besides."""
    new = taint(problem.taint, problem.value, evicts=problem.evicts)
    return {
        card: [_tainted(each, new) for each in devices]
        for card, devices in _by_card(published).items()
    }


def slice_count(devices: Devices, card: PciAddress) -> int | None:
    """Into how many slices the card is cut, as published; None where it is not to be shared."""
    name = device_name(Mode.SHARED, card)
    for each in devices:
        if each["name"] == name:
            return int(each["capacity"][CAPACITY_SLICES]["value"])
    return None


def _by_card(devices: Devices) -> dict[PciAddress, list[Object]]:
    found: dict[PciAddress, list[Object]] = {}
    for each in devices:
        card = _card(each)
        if card is not None:
            found.setdefault(card, []).append(each)
    return found


def _card(device: Mapping[str, Any]) -> PciAddress | None:
    try:
        return parse_device_name(device["name"])[1]
    except InvalidValue:  # published by another version of the driver: not one of its cards' names
        return None


def _changes(old: Devices, new: Devices) -> bool:
    """Whether something that claims are counted by goes or becomes another. What only comes, and
    attributes, by which devices are chosen but not counted, may change under a claim."""
    counted = {each["name"]: _counted(each) for each in new}
    return any(counted.get(each["name"]) != _counted(each) for each in old)


def _counted(device: Object) -> tuple[Any, Any]:
    return device.get("capacity"), device.get("allowMultipleAllocations")


def _tainted(device: Object, taint: Object) -> Object:
    """The device with that taint in place of others of its key, which the server dates anew."""
    kept = [
        {name: content for name, content in each.items() if name != "timeAdded"}
        for each in device.get("taints", ())
        if each["key"] != taint["key"]
    ]
    return device | {"taints": [*kept, taint]}
