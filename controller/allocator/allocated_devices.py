"""What allocated claims hold, whoever allocated them (upstream: allocateddevices.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Final

from controller.allocator.capacity import Amount
from controller.allocator.device import DeviceId
from dra_driver.model.claim import Object, results
from dra_driver.model.errors import InvalidValue

Share = frozenset[tuple[str, int]]
"""What one share consumes: capacities, and amounts in nano units."""


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """One result of an allocation. `consumed` maps a capacity to nano units; it is None where
    the device is held as a whole."""

    device: DeviceId
    consumed: Mapping[str, int] | None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceUsage:
    """What is held of one device; one object for equal ones. `shares` counts shares by what each
    of them consumes, and `consumed` is their sum; `wholes` counts claims that hold all of it."""

    wholes: int
    shares: Mapping[Share, int]
    consumed: Mapping[str, int]


def allocations_of(claim: Object) -> tuple[DeviceAllocation, ...]:
    """What `claim` holds of this driver's devices; administrative access holds nothing."""
    return tuple(
        DeviceAllocation(
            DeviceId(intern(result.pool), intern(result.device)),  # which claims have in common
            _consumption(tuple(result.consumed.items()))
            if result.consumed or result.share_id is not None
            else None,
        )
        for result in results(claim)
        if not result.admin_access
    )


class AllocatedDevices:
    """Counts holds. A device stays held after it vanished from its slice."""

    def __init__(self) -> None:
        self._watchers: list[set[DeviceId]] = []
        self._held: dict[str, dict[str, DeviceUsage]] = {}

    def add(self, hold: DeviceAllocation) -> None:
        pool, name = hold.device
        held = self._held.setdefault(pool, {})
        held[name] = _changed(held.get(name, _UNUSED), _share(hold.consumed), 1)
        self._tell(hold.device)

    def remove(self, hold: DeviceAllocation) -> None:
        """Take back what was added."""
        pool, name = hold.device
        held = self._held[pool]
        left = _changed(held[name], _share(hold.consumed), -1)
        if left.wholes or left.shares:
            held[name] = left
        else:
            del held[name]
            if not held:
                del self._held[pool]
        self._tell(hold.device)

    def watch(self) -> set[DeviceId]:
        """From now on, the devices whose use changes are put into the set."""
        self._watchers.append(set())
        return self._watchers[-1]

    def use(self, device: DeviceId) -> DeviceUsage | None:
        """What is held of the device; None where nothing is."""
        return self._held.get(device.pool, _NOTHING).get(device.name)

    def holds(self, device: DeviceId) -> bool:
        return device.name in self._held.get(device.pool, _NOTHING)

    def names_of_card(self, pool: str, card: str) -> Iterator[str]:
        """Names of held devices that name the card, be they published or not."""
        return (
            name
            for name in self._held.get(pool, _NOTHING)
            if DeviceId(pool, name).card_by_name == card
        )

    def _tell(self, device: DeviceId) -> None:
        for changed in self._watchers:
            changed.add(device)


_NOTHING: Final[Mapping[str, DeviceUsage]] = MappingProxyType({})
_UNUSED: Final = DeviceUsage(0, {}, {})


# Tens of thousands of claims consume in a few ways: each has one object.
@lru_cache(1024)
def _consumption(entries: tuple[tuple[str, str], ...]) -> Mapping[str, int] | None:
    """None where an amount is beyond all that a device has, such as 1e120, which upstream reads."""
    try:
        return MappingProxyType({name: Amount.parse(text).value for name, text in entries})
    except InvalidValue:
        return None


def _share(consumed: Mapping[str, int] | None) -> Share | None:
    return None if consumed is None else _share_of(tuple(consumed.items()))


@lru_cache(1024)
def _share_of(consumed: tuple[tuple[str, int], ...]) -> Share:
    return frozenset(consumed)


@lru_cache(4096)
def _changed(use: DeviceUsage, share: Share | None, by: int) -> DeviceUsage:
    """With one more such share, or one less; with one whole more or less for None."""
    if share is None:
        return _use(use.wholes + by, frozenset(use.shares.items()))
    shares = {**use.shares, share: use.shares.get(share, 0) + by}
    return _use(use.wholes, frozenset(each for each in shares.items() if each[1]))


@lru_cache(4096)
def _use(wholes: int, shares: frozenset[tuple[Share, int]]) -> DeviceUsage:
    consumed: dict[str, int] = {}
    for share, count in shares:
        for name, amount in share:
            consumed[name] = consumed.get(name, 0) + count * amount
    used = {name: amount for name, amount in consumed.items() if amount}
    return DeviceUsage(wholes, dict(shares), used)
