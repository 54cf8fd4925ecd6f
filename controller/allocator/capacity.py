"""Quantities, and what a request consumes of a device's capacity (upstream:
consumable_capacity.go, 1.36.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dra_driver.model.quantity import parse_quantity

NANO = 10**9
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity in nano units, with the text in which it was written, so that it is handed on
    unchanged. What is finer than a nano is rounded up, as the API does."""

    value: int
    text: str

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Raises InvalidValue unless `text` is a quantity."""
        return _parse(text)

    @classmethod
    def whole(cls, units: int) -> Amount:
        """Written as upstream writes what it rounded to: with the largest binary suffix."""
        number, power = units, 0
        while number and number % 1024 == 0 and power < len(_BINARY) - 1:
            number, power = number // 1024, power + 1
        return cls(units * NANO, f"{number}{_BINARY[power]}")

    @property
    def units(self) -> int:
        """As a whole number, rounded up: upstream's Quantity.Value()."""
        return -(-self.value // NANO)


# Few texts stand in a cluster's slices and claims, many thousand times each.
@lru_cache(4096)
def _parse(text: str) -> Amount:
    return Amount(math.ceil(parse_quantity(text) * NANO), text)


@dataclass(frozen=True, slots=True)
class ValidRange:
    minimum: Amount
    maximum: Amount | None
    step: Amount | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """A device's capacity and the policy by which requests are rounded and refused."""

    total: Amount
    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: ValidRange | None = None

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Capacity:
        """From a DeviceCapacity (resource.k8s.io/v1); raises InvalidValue."""
        policy = entry.get("requestPolicy") or {}
        span = policy.get("validRange")
        return cls(
            total=Amount.parse(str(entry["value"])),
            default=_optional(policy, "default"),
            valid_values=tuple(Amount.parse(str(each)) for each in policy.get("validValues") or ()),
            valid_range=None
            if span is None
            else ValidRange(
                minimum=Amount.parse(str(span["min"])),
                maximum=_optional(span, "max"),
                step=_optional(span, "step"),
            ),
        )

    def consumed(self, asked: Amount | None) -> Amount | None:
        """What is consumed when `asked` is requested (None: nothing was said about it), or None
        where the policy allows no such request."""
        amount = (self.default or self.total) if asked is None else self._round_up(asked)
        return None if self._violates_policy(amount) else amount

    @property
    def most(self) -> Amount:
        """The most that one request can get of an empty device."""
        limits = [self.total]
        if self.valid_range is not None and self.valid_range.maximum is not None:
            limits.append(self.valid_range.maximum)
        if self.valid_values:
            limits.append(max(self.valid_values, key=_value))
        return min(limits, key=_value)

    def _round_up(self, asked: Amount) -> Amount:
        if self.valid_range is not None:
            return _round_up_in(self.valid_range, asked)
        return next((each for each in self.valid_values if asked.value <= each.value), asked)

    def _violates_policy(self, amount: Amount) -> bool:
        if self.default is not None and amount.value == self.default.value:
            return False
        if self.valid_range is not None:
            return _violates_range(self.valid_range, amount)
        values = self.valid_values
        return bool(values) and all(amount.value != each.value for each in values)


def _round_up_in(span: ValidRange, asked: Amount) -> Amount:
    if asked.value < span.minimum.value:
        return span.minimum
    if span.step is None:
        return asked
    # Upstream reckons in whole numbers here, rounding each quantity up to one.
    least, step = span.minimum.units, span.step.units
    steps = -((least - asked.units) // step)
    return Amount.whole(least + step * steps)


def _violates_range(span: ValidRange, amount: Amount) -> bool:
    if span.maximum is not None and amount.value > span.maximum.value:
        return True
    return span.step is not None and (amount.units - span.minimum.units) % span.step.units != 0


def _value(amount: Amount) -> int:
    return amount.value


def _optional(entry: Mapping[str, Any], key: str) -> Amount | None:
    return Amount.parse(str(entry[key])) if entry.get(key) is not None else None
