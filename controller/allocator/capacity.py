"""What a request consumes of a device's capacity (upstream: consumable_capacity.go, 1.36.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dra_driver.model.quantity import parse_quantity

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity with the text in which it was written, so that it is handed on unchanged."""

    value: Fraction
    text: str

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Raises InvalidValue unless `text` is a quantity."""
        return cls(parse_quantity(text), text)

    @classmethod
    def whole(cls, value: int) -> Amount:
        """Written as upstream writes what it rounded to: with the largest binary suffix."""
        number, power = value, 0
        while number and number % 1024 == 0 and power < len(_BINARY) - 1:
            number, power = number // 1024, power + 1
        return cls(Fraction(value), f"{number}{_BINARY[power]}")


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
        if asked is None:
            return self.default or self.total
        rounded = self._round_up(asked)
        return rounded if self._is_valid(rounded) else None

    def _round_up(self, asked: Amount) -> Amount:
        if self.valid_range is not None:
            return _round_up_in(self.valid_range, asked)
        return next((each for each in self.valid_values if asked.value <= each.value), asked)

    def _is_valid(self, amount: Amount) -> bool:
        if self.default is not None and amount.value == self.default.value:
            return True
        if self.valid_range is not None:
            maximum = self.valid_range.maximum
            return maximum is None or amount.value <= maximum.value
        return not self.valid_values or any(
            amount.value == each.value for each in self.valid_values
        )


def _round_up_in(span: ValidRange, asked: Amount) -> Amount:
    if asked.value < span.minimum.value:
        return span.minimum
    if span.step is None:
        return asked
    # Upstream reckons in whole numbers here, rounding each quantity up to one.
    least, step = math.ceil(span.minimum.value), math.ceil(span.step.value)
    steps = -((least - math.ceil(asked.value)) // step)
    return Amount.whole(least + step * steps)


def _optional(entry: Mapping[str, Any], key: str) -> Amount | None:
    return Amount.parse(str(entry[key])) if entry.get(key) is not None else None
