"""Which of the available devices a container should get: binpack, and first the cards for which the
scheduler extender placed pods that do not have their devices yet. Pure.

A hint is only a preference: the kubelet names no pod, so the preferred card may be meant for
another pod that requests as many devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dra_driver.asks.limits import Ask, read_ask
from dra_driver.device_plugin.inventory import CardInventory
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.card import Cards
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.devices.topology import bits, topology
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_ASSIGNED
from dra_driver.model.pci import PciAddress

_Pod = Mapping[str, Any]


class Hint(msgspec.Struct, frozen=True):
    """The cards for the devices that a pod does not have yet, for slices and instances the best
    card first. The pod needs `needed` devices in all: its later containers must fit as well."""

    cards: Sequence[PciAddress]
    needed: int


Hints = Sequence[Hint]
"""Of the pods for which the kubelet may be asking, the likeliest first."""


def prefer_share(
    inventories: Iterable[CardInventory],
    available: Iterable[str],
    included: Iterable[str],
    size: int,
    *,
    hints: Hints = (),
) -> list[str]:
    """`size` devices of one card, of its slices or of its DRS size. Empty if no card has them.

    The first hinted card with room for all that its pod needs. Otherwise the best of the others, by
    these criteria in turn: room for the likeliest pod; free devices by the ledger, not only by the
    kubelet's count, which has the devices of a container that has just ended; the fewest free
    devices; in use. `included` are devices that the container gets in any case, from an init
    container.
    """
    required = _parsed(included)
    free = {
        each: [device for device in _parsed(available) if device.card == each.card]
        for each in inventories
        if each.is_usable or required
    }
    possible = [
        each
        for each, devices in free.items()
        if all(device.card == each.card for device in required)
        and len({*required, *devices}) >= size >= len(required)
    ]
    if not possible:
        return []

    def room(each: CardInventory) -> int:
        return len(set(free[each]) - set(required))

    def rank(each: CardInventory) -> tuple[int, int]:
        suits = (
            (number, hint.cards.index(each.card))
            for number, hint in enumerate(hints)
            if each.card in hint.cards and room(each) >= hint.needed
        )
        return next(suits, (len(hints), 0))

    likeliest = hints[0].needed if hints else 0
    best = min(
        possible,
        key=lambda each: (
            rank(each),
            room(each) < likeliest,
            not each.free,
            each.free,
            not each.held,
            each.card,
        ),
    )
    others = [device for device in free[best] if device not in required]
    return [str(device) for device in [*required, *others][:size]]


def prefer_whole(
    cards: Cards,
    inventories: Iterable[CardInventory],
    available: Iterable[str],
    included: Iterable[str],
    size: int,
    *,
    hints: Hints = (),
) -> list[str]:
    """`size` whole cards: those of the first hint that has enough, otherwise those that
    `Topology.nearest` chooses. Empty if there are not enough. `included` as in `prefer_share`."""
    required = [device.card for device in _parsed(included)]
    free = {each.card for each in inventories if each.free} & cards.keys()
    candidates = sorted({device.card for device in _parsed(available)} & free - set(required))
    missing = size - len(required)
    if not 0 <= missing <= len(candidates):
        return []
    for hint in hints:
        meant = [card for card in hint.cards if card in candidates][:missing]
        if len(meant) == missing:
            return [str(PluginDevice(card, Mode.WHOLE, 0)) for card in [*required, *meant]]
    ordered = sorted(cards)
    chosen = topology(tuple(cards[each].place for each in ordered)).nearest(
        missing,
        bits(ordered.index(each) for each in candidates),
        free=bits(ordered.index(each) for each in free),
        kept=bits(ordered.index(each) for each in required if each in cards),
    )
    taken = [ordered[number] for number in chosen or ()]
    return [str(PluginDevice(card, Mode.WHOLE, 0)) for card in [*required, *taken]]


def _parsed(ids: Iterable[str]) -> list[PluginDevice]:
    """Sorted, without IDs of other plugins."""
    devices = []
    for text in ids:
        try:
            devices.append(PluginDevice.parse(text))
        except InvalidValue:
            continue
    return sorted(devices)


def find_hints(
    pods: Collection[_Pod], recorded: Collection[Recorded], mode: Mode, size: int
) -> list[Hint]:
    """A hint for each pod with a container that requests `size` devices of `mode` and has none on
    record yet. A pod comes first if another of its containers has devices, because the kubelet
    admits all containers of a pod before the next pod. Otherwise in the order of `pods`."""
    found = []
    for pod in pods:
        ask = _open_ask(pod, recorded, mode, size)
        devices = _devices(pod, recorded, mode)
        cards = _cards_for_rest(_assigned(pod), devices, mode)
        if ask is not None and cards:
            found.append((not devices, Hint(cards, max(0, ask.peak - len(devices)))))
    return [hint for _, hint in sorted(found, key=lambda each: each[0])]


def is_requested(
    pods: Collection[_Pod], recorded: Collection[Recorded], mode: Mode, size: int
) -> bool:
    """Whether any of `pods` has a container that requests `size` devices of `mode` and has none on
    record yet. When the kubelet asks for them, the answer no means that the pod is not among
    `pods`."""
    return any(_open_ask(pod, recorded, mode, size) for pod in pods)


def _open_ask(pod: _Pod, recorded: Collection[Recorded], mode: Mode, size: int) -> Ask | None:
    """What a pod asks for that has such a container; None for any other pod."""
    try:
        ask = read_ask(pod, (RESOURCES[mode],))
    except Refused:  # no kubelet takes it on
        return None
    served = {each.container for each in recorded if each.pod == pod["metadata"]["uid"]}
    containers = ask.containers if ask is not None else ()
    return ask if any(c.amount == size and c.name not in served for c in containers) else None


def _cards_for_rest(
    assigned: tuple[PciAddress, ...], devices: Collection[PluginDevice], mode: Mode
) -> tuple[PciAddress, ...]:
    """The cards for the other containers of a pod, the best first. Slices and instances: the cards
    that it uses already, then the assigned ones. Whole cards: those that it does not use yet."""
    has = dict.fromkeys(device.card for device in sorted(devices))
    if mode is Mode.WHOLE:
        return tuple(card for card in assigned if card not in has)
    return tuple(dict.fromkeys((*has, *assigned)))


def _devices(pod: _Pod, recorded: Collection[Recorded], mode: Mode) -> set[PluginDevice]:
    return {
        device
        for record in recorded
        if record.pod == pod["metadata"]["uid"] and record.resource == RESOURCES[mode]
        for device in _parsed(record.devices)
    }


def _assigned(pod: _Pod) -> tuple[PciAddress, ...]:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ASSIGNED, "")
    try:
        return tuple(PciAddress.parse(part) for part in text.split(",") if part)
    except InvalidValue:  # anybody may write annotations
        return ()
