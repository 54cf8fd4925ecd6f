"""Which of the available devices a container should get: binpack. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dra_driver.device_plugin.inventory import Inventory
from dra_driver.model.card import Card
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.plugin_device import PluginDevice
from dra_driver.model.topology import bits, topology

Cards = Mapping[PciAddress, Card]


@dataclass(frozen=True, slots=True)
class Hint:
    """The cards that are meant for what a pod has not got yet, of slices and instances the best
    first, `needed` devices in all: its later containers must find room beside this one."""

    cards: Sequence[PciAddress]
    needed: int


Hints = Sequence[Hint]
"""Of pods that may be the one asked for, the likeliest first."""


def prefer_share(
    inventories: Iterable[Inventory],
    available: Iterable[str],
    included: Iterable[str],
    size: int,
    *,
    hints: Hints = (),
) -> list[str]:
    """`size` devices of one card, of its slices or of its DRS size: of the first hinted card with
    room for all that its pod needs, else of that with the fewest left, and room for the likeliest
    pod before all, a card in use before a free one, and last one that has something left by the
    kubelet's count alone: of a container that has just ended. None where no card has them.

    `included` are those that the container has anyway, handed on by an init container.
    """
    kept = _parsed(included)
    free = {
        each: [device for device in _parsed(available) if device.card == each.card]
        for each in inventories
        if each.is_usable or kept
    }
    possible = [
        each
        for each, devices in free.items()
        if all(device.card == each.card for device in kept)
        and len({*kept, *devices}) >= size >= len(kept)
    ]
    if not possible:
        return []

    def room(each: Inventory) -> int:
        return len(set(free[each]) - set(kept))

    def rank(each: Inventory) -> tuple[int, int]:
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
    others = [device for device in free[best] if device not in kept]
    return [str(device) for device in [*kept, *others][:size]]


def prefer_whole(
    cards: Cards,
    inventories: Iterable[Inventory],
    available: Iterable[str],
    included: Iterable[str],
    size: int,
    *,
    hints: Hints = (),
) -> list[str]:
    """`size` whole cards: the first hinted ones that are as many, else those that
    `Topology.nearest` takes. None where there are not as many. `included` as in `prefer_share`."""
    kept = [device.card for device in _parsed(included)]
    free = {each.card for each in inventories if each.free} & cards.keys()
    candidates = sorted({device.card for device in _parsed(available)} & free - set(kept))
    missing = size - len(kept)
    if not 0 <= missing <= len(candidates):
        return []
    for hint in hints:
        meant = [card for card in hint.cards if card in candidates][:missing]
        if len(meant) == missing:
            return [str(PluginDevice(card, Mode.WHOLE, 0)) for card in [*kept, *meant]]
    ordered = sorted(cards)
    chosen = topology(tuple(cards[each].place for each in ordered)).nearest(
        missing,
        bits(ordered.index(each) for each in candidates),
        free=bits(ordered.index(each) for each in free),
        kept=bits(ordered.index(each) for each in kept if each in cards),
    )
    taken = [ordered[number] for number in chosen or ()]
    return [str(PluginDevice(card, Mode.WHOLE, 0)) for card in [*kept, *taken]]


def _parsed(ids: Iterable[str]) -> list[PluginDevice]:
    """Ascending; what is no ID of ours is left out, as nothing can be preferred of it."""
    devices = []
    for text in ids:
        try:
            devices.append(PluginDevice.parse(text))
        except InvalidValue:
            continue
    return sorted(devices)
