"""How much of a card a request asks for by memory and compute, rather than by slices or size.

The smallest number of slices, or the smallest DRS instance, that covers both measures on a card is
what the request consumes of it (docs/adr/0030). So a card is counted in slices or sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from dra_driver.model.names import CAPACITY_MEMORY
from dra_driver.model.profile import profile_numbers

CORES: Final = "cores"
_ALL: Final = 100


class Share(msgspec.Struct, frozen=True):
    """A size that a card is given out in, with its memory in MiB and its percentage of the card's
    compute."""

    units: int
    memory_mib: float
    cores: float


class Measures(msgspec.Struct, frozen=True):
    """`memory_mib` and `cores`, a percentage of a card's compute from 1 to 99, are None where they
    are not asked for. At least one of them is."""

    memory_mib: int | None = None
    cores: int | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        """What is asked for, by the name of the measure."""
        asked = {
            CAPACITY_MEMORY: None if self.memory_mib is None else f"{self.memory_mib}Mi",
            CORES: None if self.cores is None else str(self.cores),
        }
        return {name: text for name, text in asked.items() if text is not None}

    def covering(self, shares: Sequence[Share]) -> int | None:
        """The units of the first of these shares, which ascend, that covers both measures; None if
        none does."""
        return next((each.units for each in shares if not self.missing(each)), None)

    def missing(self, share: Share) -> Mapping[str, str]:
        """Which measures the share does not cover, with what it has of each."""
        has = {
            CAPACITY_MEMORY: (self.memory_mib or 0, share.memory_mib, "Mi"),
            CORES: (self.cores or 0, share.cores, ""),
        }
        return {
            name: f"{int(given)}{unit}"
            for name, (asked, given, unit) in has.items()
            if asked > given
        }


def whole_share(memory_mib: int) -> Share:
    """What a whole card with that memory is."""
    return Share(1, memory_mib, _ALL)


def memory_per_slice(memory_mib: int, total: int) -> int:
    """The memory in MiB of one of the `total` slices of a card with `memory_mib`."""
    return memory_mib // total


def slice_shares(total: int, memory_mib: int) -> tuple[Share, ...]:
    """What 1 to `total` slices of a card are; `memory_mib` is of one slice (`memory_per_slice`)."""
    return tuple(Share(n, n * memory_mib, n * _ALL / total) for n in range(1, total + 1))


def instance_shares(profiles: Iterable[str], total: int) -> tuple[Share, ...]:
    """What DRS instances of these profiles are, ascending; `total` is the size of the card. Raises
    InvalidValue for a malformed profile name."""
    numbers = sorted(map(profile_numbers, profiles))
    return tuple(Share(size, gib * 1024, size * _ALL / total) for size, gib in numbers)


def share_of_units(shares: Iterable[Share], units: int | None) -> Share | None:
    """The one of the shares that has so many units; None if there is none."""
    return next((share for share in shares if share.units == units), None)
