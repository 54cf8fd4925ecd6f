"""Quantities as whole numbers of nano units, the finest that the API keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

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
