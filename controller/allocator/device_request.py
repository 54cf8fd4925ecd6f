"""What a request asks of any device, and a constraint of several devices together (upstream:
constraint.go, 1.36.3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from controller.allocator.capacity import Amount
from controller.allocator.device import Attribute, Device, DeviceKind
from controller.allocator.taints import Taint, untolerated
from dra_driver.model.claims.measures import Measures, Share, share_of_units
from dra_driver.model.claims.packing import PackingChoice

WHOLE = 1000  # a device, or all of one of its capacities, where parts are compared


@dataclass(frozen=True, slots=True)
class CapacityFit:
    """What a grant consumes of a device's capacities. Nothing is counted of a device for one claim
    alone, but what is requested must still fit. `amounts` has for each capacity its name, what is
    consumed, and the total, in nano units; `share` the same without the total. `left` is what stays
    of a free device, in thousandths of each capacity. `taints` are those not tolerated."""

    consumed: Mapping[str, Amount]
    amounts: tuple[tuple[str, int, int], ...]
    share: frozenset[tuple[str, int]]
    left: int
    taints: tuple[Taint, ...]


class Shortfall(NamedTuple):
    """A device gives less of this capacity, or measure, than is requested: at most `most`, or None
    if it does not have it."""

    name: str
    most: Amount | None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRequest:
    """One object for all requests that ask the same (see `device_request`), so that what is
    computed for one serves the others. `selectors` are the class's and then the request's own.
    `count` is None if all devices that match are requested; `packing` is what the claim says.
    `measures` decide how much is consumed where no capacity is asked for; beside a capacity, what
    that consumes must cover them."""

    selectors: tuple[str, ...]
    count: int | None
    capacity: Mapping[str, Amount]
    tolerations: str  # JSON
    admin_access: bool
    packing: PackingChoice
    measures: Measures | None
    _capacity_fits: dict[DeviceKind, CapacityFit | None] = field(default_factory=dict, repr=False)

    def capacity_fit(self, kind: DeviceKind) -> CapacityFit | None:
        """What a device of the kind would give; None if it can never serve the request."""
        if kind not in self._capacity_fits:
            self._capacity_fits[kind] = self._capacity_fit(kind)
        return self._capacity_fits[kind]

    def undercuts(self, kind: DeviceKind) -> bool:
        """Whether a device of the kind gives the capacity that is asked for, and that is less than
        the measures say."""
        consumed = _consumed(kind, self.capacity)
        return consumed is not None and not self._is_covered(_share(kind, consumed))

    def shortfalls(self, kind: DeviceKind) -> Iterator[Shortfall]:
        """The capacities and measures of which a device of the kind has less than is requested."""
        if self.measures is not None:
            share = self._most(kind)
            if share is not None:
                for name, most in self.measures.missing(share).items():
                    yield Shortfall(name, Amount.parse(most))
            elif not self.capacity:
                yield from (Shortfall(name, None) for name in self.measures.texts)
        for name, asked in self.capacity.items():
            capacity = kind.capacity.get(name)
            if capacity is None:
                yield Shortfall(name, None)
                continue
            amount = capacity.consumed(asked)
            if amount is None or amount.value > capacity.total.value:
                yield Shortfall(name, capacity.most)

    def _capacity_fit(self, kind: DeviceKind) -> CapacityFit | None:
        asks = self._asks(kind)
        consumed = None if asks is None else _consumed(kind, asks)
        if consumed is None or not self._is_covered(_share(kind, consumed)):
            return None
        amounts = [
            (name, amount.value, kind.capacity[name].total.value)
            for name, amount in consumed.items()
        ]
        taints = untolerated(kind.taints, json.loads(self.tolerations))
        share = frozenset((name, amount) for name, amount, _ in amounts)
        left = sum((total - amount) * WHOLE // total for _, amount, total in amounts if total)
        return CapacityFit(consumed, tuple(amounts), share, left, taints)

    def _is_covered(self, share: Share | None) -> bool:
        """Whether the share of a card is as much as the measures say."""
        return self.measures is None or (share is not None and not self.measures.missing(share))

    def _most(self, kind: DeviceKind) -> Share | None:
        """The largest share that a device of the kind gives; None if that is unknown."""
        if not self.capacity:
            return kind.shares[-1] if kind.shares else None
        consumed = _consumed(kind, self.capacity)
        return None if consumed is None else _share(kind, consumed)

    @property
    def texts(self) -> Mapping[str, str]:
        """What is asked for of capacities and measures, by name, as people write it."""
        measures = {} if self.measures is None else self.measures.texts
        return {name: each.text for name, each in self.capacity.items()} | dict(measures)

    def _asks(self, kind: DeviceKind) -> Mapping[str, Amount] | None:
        """The capacities to consume of a device of the kind; None if it does not cover the
        measures."""
        if self.measures is None or self.capacity:
            return self.capacity
        units = self.measures.covering(kind.shares)
        return None if units is None else {kind.shared_capacity: Amount.whole(units)}


def _consumed(kind: DeviceKind, asks: Mapping[str, Amount]) -> dict[str, Amount] | None:
    """What a device of the kind gives of each of its capacities; None if it lacks one of `asks`, or
    has less of it."""
    if asks.keys() - kind.capacity.keys():
        return None
    consumed: dict[str, Amount] = {}
    for name, capacity in kind.capacity.items():
        amount = capacity.consumed(asks.get(name))
        if amount is None or amount.value > capacity.total.value:
            return None
        consumed[name] = amount
    return consumed


def _share(kind: DeviceKind, consumed: Mapping[str, Amount]) -> Share | None:
    """How much of a card that is; None for a whole card, or if it is unknown."""
    amount = consumed.get(kind.shared_capacity)
    return None if amount is None else share_of_units(kind.shares, amount.units)


@lru_cache(1024)
def device_request(
    selectors: tuple[str, ...],
    count: int | None,
    capacity: tuple[tuple[str, str], ...],
    tolerations: str,
    *,
    admin_access: bool,
    packing: PackingChoice,
    measures: Measures | None = None,
) -> DeviceRequest:
    """The one DeviceRequest for these; `capacity` has names and quantities as written. Raises
    InvalidValue if a quantity is none."""
    amounts = {name: Amount.parse(text) for name, text in capacity}
    return DeviceRequest(selectors, count, amounts, tolerations, admin_access, packing, measures)


@dataclass(frozen=True, slots=True)
class Constraint:
    """All devices have the same value of the attribute (of lists, at least one value that all
    have), or, if `distinct`, no two of them have a value in common. A device without the attribute
    breaks the constraint. `requests` has names of requests, or of subrequests as ``request/sub``;
    empty means all.

    Distinct is as the API documents it. Upstream (1.36.3) remembers one value for each request and
    so misses equal ones within a request for three devices or more.
    """

    attribute: str
    requests: frozenset[str]
    distinct: bool

    def applies(self, request: str) -> bool:
        """`request` is the full name: ``request/sub`` for a subrequest."""
        names = self.requests
        return not names or request in names or request.partition("/")[0] in names

    def add(self, before: tuple[Attribute, ...], device: Device) -> tuple[Attribute, ...] | None:
        """What the devices chosen so far leave of the constraint: `before` without, the result with
        `device`. None if it breaks the constraint."""
        value = device.attribute(self.attribute)
        if value is None or not before:
            return None if value is None else (value,)
        if self.distinct:
            return None if any(map(value.common, before)) else (*before, value)
        shared = before[0].common(value)
        return None if shared is None else (shared,)

    @property
    def words(self) -> str:
        """For people, after "2 requested"."""
        return (
            f"with distinct {self.attribute}"
            if self.distinct
            else f"with the same {self.attribute}"
        )
