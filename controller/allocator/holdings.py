"""What is held by allocated claims, whoever allocated them (upstream: allocateddevices.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from controller.allocator.amount import Amount
from controller.allocator.device import DeviceId
from dra_driver.model.claim import Object, results
from dra_driver.model.errors import InvalidValue


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

    def count(self, consumed: Mapping[str, int] | None, by: int) -> None:
        if consumed is None:
            self.whole += by
            return
        share = _share(tuple(consumed.items()))
        self.shares[share] += by
        if not self.shares[share]:
            del self.shares[share]
        for name, amount in consumed.items():
            self.consumed[name] = self.consumed.get(name, 0) + by * amount
            if not self.consumed[name]:
                del self.consumed[name]


def holds_of(claim: Object) -> tuple[Hold, ...]:
    """What `claim` holds of this driver's devices; administrative access holds nothing."""
    return tuple(
        Hold(
            DeviceId(result.pool, result.device),
            None if result.share_id is None else _consumption(tuple(result.consumed.items())),
        )
        for result in results(claim)
        if not result.admin_access
    )


# Tens of thousands of claims consume in a few ways: each has one object.
@lru_cache(1024)
def _consumption(entries: tuple[tuple[str, str], ...]) -> Mapping[str, int] | None:
    """None where an amount is beyond all that a device has, such as 1e120, which upstream reads."""
    try:
        return MappingProxyType({name: Amount.parse(text).value for name, text in entries})
    except InvalidValue:
        return None


@lru_cache(1024)
def _share(consumed: tuple[tuple[str, int], ...]) -> frozenset[tuple[str, int]]:
    return frozenset(consumed)


class PoolHoldings:
    """What is held of one pool's devices, by their names. `named_after` has the names of held
    devices by the card that the name tells, as that is all that is left of one that vanished."""

    __slots__ = ("named_after", "uses")

    def __init__(self) -> None:
        self.uses: dict[str, Use] = {}
        self.named_after: dict[str, set[str]] = {}

    def count(self, hold: Hold, by: int) -> None:
        name = hold.device.name
        use = self.uses.get(name)
        if use is None:
            use = self.uses[name] = Use()
            card = hold.device.card_by_name
            if card is not None:
                self.named_after.setdefault(card, set()).add(name)
        use.count(hold.consumed, by)
        if not use.whole and not use.shares:
            self._forget(hold.device)

    def _forget(self, device: DeviceId) -> None:
        del self.uses[device.name]
        card = device.card_by_name
        if card is not None:
            self.named_after[card].discard(device.name)
            if not self.named_after[card]:
                del self.named_after[card]


_NOTHING = PoolHoldings()


class Holdings:
    """Counts holds. A device stays held after it vanished from its slice."""

    def __init__(self) -> None:
        self._pools: dict[str, PoolHoldings] = {}
        self._watchers: list[set[str]] = []

    def add(self, hold: Hold) -> None:
        self._count(hold, 1)

    def remove(self, hold: Hold) -> None:
        """Take back what was added."""
        self._count(hold, -1)

    def watch(self, changed: set[str]) -> None:
        """From now on, put the names of pools whose holds change into `changed`."""
        self._watchers.append(changed)

    def in_pool(self, pool: str) -> PoolHoldings:
        """To be read, and not kept."""
        return self._pools.get(pool, _NOTHING)

    def use(self, device: DeviceId) -> Use | None:
        """What is held of the device; None where nothing is."""
        return self.in_pool(device.pool).uses.get(device.name)

    def holds(self, device: DeviceId) -> bool:
        return self.use(device) is not None

    def _count(self, hold: Hold, by: int) -> None:
        pool = hold.device.pool
        for changed in self._watchers:
            changed.add(pool)
        found = self._pools.get(pool)
        if found is None:
            found = self._pools[pool] = PoolHoldings()
        found.count(hold, by)
        if not found.uses:
            del self._pools[pool]
