"""What opaque configuration says about one request of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra_driver.model.claims.packing import PackingChoice
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES

_NO_CHOICE: Final = PackingChoice()


@dataclass(frozen=True, slots=True)
class RequestConfig:
    """`slices` of a shared card and `size` of a DRS instance are None where nothing is said."""

    packing: PackingChoice = _NO_CHOICE
    slices: int | None = None
    size: int | None = None

    @property
    def amounts(self) -> Mapping[str, int]:
        """The amounts that are given, by the name of the capacity."""
        given = {CAPACITY_SLICES: self.slices, CAPACITY_SIZE: self.size}
        return {name: amount for name, amount in given.items() if amount is not None}

    def over(self, earlier: RequestConfig) -> RequestConfig:
        """Both together. This one wins, and leaves what it does not say."""
        return RequestConfig(
            self.packing.over(earlier.packing),
            earlier.slices if self.slices is None else self.slices,
            earlier.size if self.size is None else self.size,
        )
