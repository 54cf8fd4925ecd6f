"""Quantities, and what a request consumes of a device's capacity (upstream:
consumable_capacity.go, 1.36.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dra_driver.model.quantity import format_binary, parse_quantity

NANO = 10**9


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity in nano units, and the text in which it was written, so that it is passed on
    unchanged. Anything finer than a nano is rounded up, as in the API."""

    value: int
    text: str

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Raises InvalidValue unless `text` is a quantity."""
        return _parse(text)

    @classmethod
    def whole(cls, units: int) -> Amount:
        """As upstream writes what it has rounded: with the largest binary suffix."""
        return cls(units * NANO, format_binary(units))

    @property
    def units(self) -> int:
        """As a whole number, rounded up: upstream's Quantity.Value()."""
        return -(-self.value // NANO)


# The slices and claims of a cluster have few different texts, many thousand times each.
@lru_cache(4096)
def _parse(text: str) -> Amount:
    return Amount(math.ceil(parse_quantity(text) * NANO), text)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A device's capacity, and the policy by which requests are rounded and refused: `values`, or
    a range from `minimum` (None if there is no range) to `maximum` in steps."""

    total: Amount
    default: Amount | None
    values: tuple[Amount, ...]
    minimum: Amount | None
    maximum: Amount | None
    step: Amount | None

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Capacity:
        """From a DeviceCapacity (resource.k8s.io/v1); raises InvalidValue."""
        policy = entry.get("requestPolicy") or {}
        span = policy.get("validRange") or {}
        return cls(
            total=Amount.parse(str(entry["value"])),
            default=_optional(policy, "default"),
            values=tuple(Amount.parse(str(each)) for each in policy.get("validValues") or ()),
            minimum=_optional(span, "min"),
            maximum=_optional(span, "max"),
            step=_optional(span, "step"),
        )

    def consumed(self, asked: Amount | None) -> Amount | None:
        """What is consumed if `asked` is requested (None: the request does not mention it). None
        if the policy allows no such request, or it is negative (upstream: CmpRequestOverCapacity
        of structured/internal/experimental, 1.37.2, errNegativeCapacity)."""
        amount = (self.default or self.total) if asked is None else self._round_up(asked)
        return amount if self._allows(amount) else None

    @property
    def most(self) -> Amount:
        """The most that one request can get of an empty device."""
        limits = [self.total]
        if self.maximum is not None:
            limits.append(self.maximum)
        if self.values:
            limits.append(max(self.values, key=_value))
        return min(limits, key=_value)

    def _round_up(self, asked: Amount) -> Amount:
        if self.minimum is None:
            return next((each for each in self.values if asked.value <= each.value), asked)
        if asked.value < self.minimum.value:
            return self.minimum
        if self.step is None:
            return asked
        # Here upstream calculates in whole numbers, and rounds each quantity up to one.
        least, step = self.minimum.units, self.step.units
        return Amount.whole(least - (least - asked.units) // step * step)

    def _allows(self, amount: Amount) -> bool:
        if amount.value < 0:
            return False
        if self.default is not None and amount.value == self.default.value:
            return True
        if self.minimum is None:
            return not self.values or any(amount.value == each.value for each in self.values)
        if self.maximum is not None and amount.value > self.maximum.value:
            return False
        return self.step is None or (amount.units - self.minimum.units) % self.step.units == 0


def _value(amount: Amount) -> int:
    return amount.value


def _optional(entry: Mapping[str, Any], key: str) -> Amount | None:
    return Amount.parse(str(entry[key])) if entry.get(key) is not None else None
