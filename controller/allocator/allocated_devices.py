"""What claims have, whoever allocated them (upstream: allocateddevices.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Final

from controller.allocator.capacity import Amount
from controller.allocator.device import DeviceId
from dra_driver.model.claims.claim import Object, Result, all_results, results
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER

Share = frozenset[tuple[str, int]]
"""What one share consumes: capacities, and amounts in nano units."""


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """One result of an allocation. `consumed` maps a capacity to nano units; it is None if the
    device is allocated as a whole."""

    device: DeviceId
    consumed: Mapping[str, int] | None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceUsage:
    """What is allocated of one device; one object for equal ones. `shares` counts shares by what
    each consumes, `consumed` is their sum, `wholes` counts claims that have all of the device."""

    wholes: int
    shares: Mapping[Share, int]
    consumed: Mapping[str, int]


def allocations_of(claim: Object) -> tuple[DeviceAllocation, ...]:
    """What `claim` has of this driver's devices; administrative access counts as nothing."""
    return tuple(_allocation(result) for result in results(claim) if not result.admin_access)


def allocations_of_others(claim: Object) -> tuple[tuple[str, DeviceAllocation], ...]:
    """The same of other drivers' devices, each with its driver."""
    return tuple(
        (intern(result.driver), _allocation(result))
        for result in all_results(claim)
        if result.driver != DRIVER and not result.admin_access
    )


def _allocation(result: Result) -> DeviceAllocation:
    return DeviceAllocation(
        DeviceId(intern(result.pool), intern(result.device)),  # which claims have in common
        _consumption(tuple(result.consumed.items()))
        if result.consumed or result.share_id is not None
        else None,
    )


class AllocatedDevices:
    """Counts allocations. A device stays allocated after it has vanished from its slice."""

    def __init__(self) -> None:
        self._watchers: list[set[DeviceId]] = []
        self._used: dict[str, dict[str, DeviceUsage]] = {}

    def add(self, allocation: DeviceAllocation) -> None:
        self._change(allocation, 1)

    def remove(self, allocation: DeviceAllocation) -> None:
        """Take back what was added."""
        self._change(allocation, -1)

    def watch(self) -> set[DeviceId]:
        """From now on, the devices whose use changes are put into the set."""
        self._watchers.append(set())
        return self._watchers[-1]

    def use(self, device: DeviceId) -> DeviceUsage | None:
        """What is allocated of the device; None if nothing is."""
        return self._used.get(device.pool, _NOTHING).get(device.name)

    def names_of_card(self, pool: str, card: str) -> list[str]:
        """Names of allocated devices that name the card, whether they are published or not."""
        names = self._used.get(pool, _NOTHING)
        return [name for name in names if DeviceId(pool, name).card_by_name == card]

    def _change(self, allocation: DeviceAllocation, by: int) -> None:
        pool, name = allocation.device
        used = self._used.setdefault(pool, {})
        share = None if allocation.consumed is None else tuple(allocation.consumed.items())
        used[name] = _changed(used.get(name, _UNUSED), share, by)
        if not used[name].wholes and not used[name].shares:
            del used[name]
            if not used:
                del self._used[pool]
        for changed in self._watchers:
            changed.add(allocation.device)


_NOTHING: Final[Mapping[str, DeviceUsage]] = MappingProxyType({})
_UNUSED: Final = DeviceUsage(0, {}, {})


# Tens of thousands of claims consume in a few ways: there is one object for each.
@lru_cache(1024)
def _consumption(entries: tuple[tuple[str, str], ...]) -> Mapping[str, int] | None:
    """None if an amount is more than all that a device has, such as 1e120, which upstream reads."""
    try:
        return MappingProxyType({name: Amount.parse(text).value for name, text in entries})
    except InvalidValue:
        return None


@lru_cache(4096)
def _changed(use: DeviceUsage, share: tuple[tuple[str, int], ...] | None, by: int) -> DeviceUsage:
    """With so many such shares more; None is all of the device."""
    if share is None:
        return _use(use.wholes + by, frozenset(use.shares.items()))
    shares = Counter(use.shares)
    shares[frozenset(share)] += by
    return _use(use.wholes, frozenset((+shares).items()))


@lru_cache(4096)
def _use(wholes: int, shares: frozenset[tuple[Share, int]]) -> DeviceUsage:
    consumed: Counter[str] = Counter()
    for share, count in shares:
        for name, amount in share:
            consumed[name] += count * amount
    return DeviceUsage(wholes, dict(shares), +consumed)
