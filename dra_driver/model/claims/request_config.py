"""What opaque configuration says about one request of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from dra_driver.model.claims.measures import Measures
from dra_driver.model.claims.packing import PackingChoice
from dra_driver.model.mode import Mode
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES

T = TypeVar("T")


class RequestConfig(msgspec.Struct, frozen=True):
    """`slices` of a shared card and `size` of a DRS instance, or `measures` in their place, are
    None where nothing is said. `mode` is the one that ``isolation`` stands for; None if shared
    slices and DRS instances serve. `device_metadata` is whether containers get a file with the
    devices' attributes; None where nothing is said."""

    packing: PackingChoice = PackingChoice()
    slices: int | None = None
    size: int | None = None
    measures: Measures | None = None
    mode: Mode | None = None
    device_metadata: bool | None = None

    @property
    def amounts(self) -> Mapping[str, int]:
        """The amounts that are given, by the name of the capacity."""
        given = {CAPACITY_SLICES: self.slices, CAPACITY_SIZE: self.size}
        return {name: amount for name, amount in given.items() if amount is not None}

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of the amounts and measures that are given."""
        return (*self.amounts, *(() if self.measures is None else self.measures.texts))

    def over(self, earlier: RequestConfig) -> RequestConfig:
        """Both together. This one wins, and leaves what it does not say."""
        return _over(self, earlier)


def _over(later: T, earlier: T) -> T:
    """Field by field; None says nothing."""
    if isinstance(later, msgspec.Struct) and isinstance(earlier, msgspec.Struct):
        pairs = zip(astuple(later), astuple(earlier), strict=True)
        return type(later)(*(_over(*pair) for pair in pairs))
    return earlier if later is None else later
