"""A node as a decision sees it: its cards, what is held of them, and how they stand to each other.

Upstream's idea of the same name (kube-scheduler, framework.NodeInfo): it changes in place, and its
generation grows with each change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.device import Device, DeviceId, DeviceKind
from controller.allocator.signature import CardSignature, Signatures
from dra_driver.model.topology import Topology, bits, topology


@dataclass(slots=True)
class Card:
    """Devices that exclude each other, in the order of slices; a device that is of no card is one
    of its own."""

    devices: tuple[Device, ...]
    kinds: tuple[DeviceKind, ...]
    signature: CardSignature


class NodeInfo:
    """`free_cards` is the set of free cards (as in `Topology`, by their numbers in `cards`), `load`
    what is held, in thousandths of a card. `generation` is that of the whole fleet's last change
    that concerned the node."""

    __slots__ = (
        "_places",
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
        holdings: AllocatedDevices,
        signatures: Signatures,
    ) -> None:
        self.name = name
        self.number = number
        self.generation = 0
        self.devices = devices
        self._places: dict[DeviceId, int] = {}
        grouped: dict[tuple[str, str], list[Device]] = defaultdict(list)
        for device in devices:
            grouped[device.card or device.id].append(device)
        self.cards: list[Card] = []
        for card, members in enumerate(grouped.values()):
            self._places.update((device.id, card) for device in members)
            kinds = tuple([device.kind for device in members])
            signature = signatures.of(kinds, (None,) * len(members), ())
            self.cards.append(Card(tuple(members), kinds, signature))
        self.topology: Topology = topology(tuple([card.devices[0].place for card in self.cards]))
        self.refresh(range(len(self.cards)), holdings, signatures)

    @property
    def free(self) -> int:
        return self.free_cards.bit_count()

    def refresh(
        self, cards: Iterable[int], holdings: AllocatedDevices, signatures: Signatures
    ) -> list[tuple[CardSignature, CardSignature]]:
        """Learn what is held of these cards; gives the signatures that changed, before and now."""
        changed: list[tuple[CardSignature, CardSignature]] = []
        for number in cards:
            card = self.cards[number]
            uses = tuple([holdings.use(device.id) for device in card.devices])
            now = signatures.of(card.kinds, uses, self._vanished(card, holdings))
            if now is not card.signature:
                changed.append((card.signature, now))
                card.signature = now
        self.load = sum([card.signature.load for card in self.cards])
        self.free_cards = sum(
            [1 << number for number, card in enumerate(self.cards) if card.signature.free]
        )
        return changed

    def card_of(self, device: DeviceId) -> int | None:
        """The number of the card that the device is of, or was of by its name."""
        found = self._places.get(device)
        if found is None and (address := device.card_by_name) is not None:
            for number, card in enumerate(self.cards):
                if card.devices[0].card == (device.pool, address):
                    return number
        return found

    def neighbours(self, card: int) -> tuple[int, ...]:
        """How many free cards there are beside the card, by their distance."""
        return self.topology.neighbours(card, self.free_cards)

    def nearest(self, count: int, *groups: Iterable[int]) -> tuple[int, ...]:
        """The cards to take for `count` devices of cards of one of these groups; none where no
        group has as many."""
        available = [bits(group) for group in groups]
        return self.topology.nearest(count, *available, free=self.free_cards) or ()

    def distance(self, card: int, cards: tuple[int, ...]) -> int:
        """From the card to the nearest of the cards; 0 if it is one of them."""
        if card in cards:
            return 0
        return min(self.topology.distance(card, each) for each in cards)

    def spread(self, cards: Iterable[int]) -> tuple[int, int]:
        """How far apart the cards are: the largest distance and the sum of all."""
        return self.topology.spread(bits(cards))

    def _vanished(self, card: Card, holdings: AllocatedDevices) -> tuple[str, ...]:
        """The types, by their names, of devices of the card that are held and not published."""
        key = card.devices[0].card
        if key is None:
            return ()
        return tuple(sorted(name.partition("-")[0] for name in self._held_unknown(key, holdings)))

    def _held_unknown(self, key: tuple[str, str], holdings: AllocatedDevices) -> Iterator[str]:
        pool, address = key
        for name in holdings.names_of_card(pool, address):
            if DeviceId(pool, name) not in self._places:
                yield name
