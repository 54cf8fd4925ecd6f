"""A node as the allocator sees it: its cards, what is allocated of them, and where they are.

Upstream's idea of the same name (kube-scheduler, framework.NodeInfo): it changes in place, and its
generation grows with each change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.device import CardKey, Device, DeviceId, DeviceKind
from controller.allocator.nodes.signature import CardSignature, Signatures
from dra_driver.model.devices.topology import topology


@dataclass(slots=True)
class CardDevices:
    """Devices that exclude each other, in the order of slices. A device without the attribute
    `card` is a card of its own, whose `key` is the device's id."""

    key: CardKey | DeviceId
    devices: tuple[Device, ...]
    kinds: tuple[DeviceKind, ...]
    signature: CardSignature


class NodeInfo:
    """`free_cards` is a set of cards as in `Topology`, by their numbers in `cards`. `load` is what
    is allocated, in thousandths of a card. `generation` is that of the fleet's last change that
    concerned the node."""

    __slots__ = (
        "_cards_of",
        "cards",
        "devices",
        "free_cards",
        "generation",
        "load",
        "name",
        "number",
        "topology",
    )

    def __init__(
        self,
        name: str,
        number: int,
        devices: tuple[Device, ...],
        allocated: AllocatedDevices,
        signatures: Signatures,
    ) -> None:
        self.name = name
        self.number = number
        self.generation = 0
        self.devices = devices
        grouped: dict[CardKey | DeviceId, list[Device]] = defaultdict(list)
        for device in devices:
            grouped[device.card or device.id].append(device)
        self._cards_of: dict[DeviceId, int] = {}
        self.cards: list[CardDevices] = []
        for card, (key, members) in enumerate(grouped.items()):
            self._cards_of.update((device.id, card) for device in members)
            kinds = tuple([device.kind for device in members])
            signature = signatures.of(kinds, (None,) * len(members), ())
            self.cards.append(CardDevices(key, tuple(members), kinds, signature))
        self.topology = topology(tuple([card.devices[0].place for card in self.cards]))
        self.refresh(range(len(self.cards)), allocated, signatures)

    @property
    def free(self) -> int:
        """The number of free cards."""
        return self.free_cards.bit_count()

    def refresh(
        self, cards: Collection[int], allocated: AllocatedDevices, signatures: Signatures
    ) -> bool:
        """Read what is allocated of these cards; returns whether that has changed."""
        changed = False
        for number in cards:
            card = self.cards[number]
            uses = tuple([allocated.use(device.id) for device in card.devices])
            found = signatures.of(card.kinds, uses, self._vanished(card, allocated))
            changed |= found is not card.signature
            card.signature = found
        self.load = sum([card.signature.load for card in self.cards])
        self.free_cards = sum(
            [1 << number for number, card in enumerate(self.cards) if card.signature.free]
        )
        return changed

    def card_of(self, device: DeviceId) -> int | None:
        """The number of the device's card; if the device is not published, of the card that its
        name names."""
        found = self._cards_of.get(device)
        if found is None and (address := device.card_by_name) is not None:
            for number, card in enumerate(self.cards):
                if card.key == (device.pool, address):
                    return number
        return found

    def _vanished(self, card: CardDevices, allocated: AllocatedDevices) -> tuple[str, ...]:
        """The types, by their names, of the card's devices that are allocated and not published."""
        if isinstance(card.key, DeviceId):
            return ()
        pool, address = card.key
        names = [
            name
            for name in allocated.names_of_card(pool, address)
            if DeviceId(pool, name) not in self._cards_of
        ]
        return tuple(sorted(name.partition("-")[0] for name in names))
