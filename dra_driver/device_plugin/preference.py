"""Which of the available devices a container should get: binpack. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dra_driver.device_plugin.inventory import CardInventory
from dra_driver.model.card import Cards
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.devices.topology import bits, topology
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress


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
