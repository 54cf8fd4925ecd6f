"""What is held: by allocated claims, whoever allocated them, and by a search in progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from controller.allocator.device import Device, DeviceId
from controller.allocator.inventory import Inventory
from dra_driver.model.claim import Object, results
from dra_driver.model.quantity import parse_quantity


@dataclass(frozen=True, slots=True)
class Hold:
    """One result of an allocation. `consumed` is None where the device is held as a whole."""

    device: DeviceId
    consumed: Mapping[str, Fraction] | None


def holds_of(claim: Object) -> tuple[Hold, ...]:
    """What `claim` holds of this driver's devices; administrative access holds nothing."""
    return tuple(
        Hold(
            DeviceId(result.pool, result.device),
            None
            if result.share_id is None
            else {name: parse_quantity(text) for name, text in result.consumed.items()},
        )
        for result in results(claim)
        if not result.admin_access
    )


class Holdings:
    """Counts holds. A device stays held after it vanished from its slice: the card is known by
    the device's name, so that nothing else is placed there."""

    def __init__(self) -> None:
        self._whole: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._consumed: defaultdict[DeviceId, dict[str, Fraction]] = defaultdict(dict)
        self._on_card: defaultdict[tuple[str, str], Counter[DeviceId]] = defaultdict(Counter)

    def add(self, hold: Hold) -> None:
        self._count(hold, 1)

    def remove(self, hold: Hold) -> None:
        self._count(hold, -1)

    def holds(self, device: DeviceId) -> bool:
        """Whether anything of the device is held."""
        return device in self._whole or device in self._shares

    def holds_whole(self, device: DeviceId) -> bool:
        return device in self._whole

    def excluded(self, device: Device, inventory: Inventory) -> bool:
        """Whether another device of the same card is held: a card is in one mode at a time."""
        if device.card is None:
            return False
        if any(self.holds(each.id) for each in inventory.siblings(device)):
            return True
        on_card = self._on_card.get((device.id.pool, device.card), ())
        return any(each != device.id for each in on_card)

    def consumed(self, device: DeviceId, capacity: str) -> Fraction:
        return self._consumed.get(device, {}).get(capacity, Fraction(0))

    def _count(self, hold: Hold, by: int) -> None:
        counted = self._whole if hold.consumed is None else self._shares
        _add(counted, hold.device, by)
        card = hold.device.card_by_name
        if card is not None:
            on_card = self._on_card[hold.device.pool, card]
            _add(on_card, hold.device, by)
            if not on_card:
                del self._on_card[hold.device.pool, card]
        if hold.consumed is not None:
            self._consume(hold.device, hold.consumed, by)

    def _consume(self, device: DeviceId, consumed: Mapping[str, Fraction], by: int) -> None:
        sums = self._consumed[device]
        for name, amount in consumed.items():
            sums[name] = sums.get(name, Fraction(0)) + by * amount
        if device not in self._shares:
            del self._consumed[device]


def _add(counted: Counter[DeviceId], device: DeviceId, by: int) -> None:
    counted[device] += by
    if counted[device] <= 0:
        del counted[device]
