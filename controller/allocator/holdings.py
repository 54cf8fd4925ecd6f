"""What is held by allocated claims, whoever allocated them (upstream: allocateddevices.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from controller.allocator.amount import Amount
from controller.allocator.device import CardKey, DeviceId
from dra_driver.model.claim import Object, results


@dataclass(frozen=True, slots=True)
class Hold:
    """One result of an allocation. `consumed` maps a capacity to nano units; it is None where
    the device is held as a whole."""

    device: DeviceId
    consumed: Mapping[str, int] | None


@dataclass(slots=True)
class Use:
    """What is held of one device. `shares` counts shares by what each of them consumes."""

    whole: int = 0
    shares: Counter[frozenset[tuple[str, int]]] = field(default_factory=Counter)
    consumed: dict[str, int] = field(default_factory=dict)


def holds_of(claim: Object) -> tuple[Hold, ...]:
    """What `claim` holds of this driver's devices; administrative access holds nothing."""
    return tuple(
        Hold(
            DeviceId(result.pool, result.device),
            None
            if result.share_id is None
            else {name: Amount.parse(text).value for name, text in result.consumed.items()},
        )
        for result in results(claim)
        if not result.admin_access
    )


class Holdings:
    """Counts holds. A device stays held after it vanished from its slice: the card is known by
    the device's name, so that nothing else is placed there."""

    def __init__(self) -> None:
        self._uses: dict[DeviceId, Use] = {}
        self._by_card: dict[CardKey, set[DeviceId]] = {}
        self._watchers: list[set[str]] = []

    def add(self, hold: Hold) -> None:
        use = self._uses.get(hold.device)
        if use is None:
            use = self._uses[hold.device] = Use()
            self._enter(hold.device)
        self._count(use, hold, 1)

    def remove(self, hold: Hold) -> None:
        """Take back what was added."""
        use = self._uses[hold.device]
        self._count(use, hold, -1)
        if not use.whole and not use.shares:
            del self._uses[hold.device]
            self._leave(hold.device)

    def watch(self, changed: set[str]) -> None:
        """From now on, put the names of pools whose holds change into `changed`."""
        self._watchers.append(changed)

    def use(self, device: DeviceId) -> Use | None:
        """What is held of the device; None where nothing is."""
        return self._uses.get(device)

    def holds(self, device: DeviceId) -> bool:
        return device in self._uses

    def named_after(self, card: CardKey) -> Collection[DeviceId]:
        """Held devices whose names tell that they belong to the card."""
        return self._by_card.get(card, ())

    def _count(self, use: Use, hold: Hold, by: int) -> None:
        for changed in self._watchers:
            changed.add(hold.device.pool)
        if hold.consumed is None:
            use.whole += by
            return
        share = frozenset(hold.consumed.items())
        use.shares[share] += by
        if not use.shares[share]:
            del use.shares[share]
        for name, amount in hold.consumed.items():
            use.consumed[name] = use.consumed.get(name, 0) + by * amount
            if not use.consumed[name]:
                del use.consumed[name]

    def _enter(self, device: DeviceId) -> None:
        card = device.card_by_name
        if card is not None:
            self._by_card.setdefault((device.pool, card), set()).add(device)

    def _leave(self, device: DeviceId) -> None:
        card = device.card_by_name
        if card is not None:
            held = self._by_card[device.pool, card]
            held.discard(device)
            if not held:
                del self._by_card[device.pool, card]
