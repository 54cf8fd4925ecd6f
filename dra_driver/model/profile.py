"""DRS profiles: into which partitions a card can be divided. Read at run time, never assumed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from dra_driver.model.card import Card
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import ATTRIBUTE_BYTES

_NAME: Final = re.compile(r"([1-9][0-9]{0,2})g\.([0-9]{1,6})gb")
_SEPARATOR: Final = ","
_HIGHEST: Final = 10_000  # of an id, a count and SIPs; cards have dozens


class Profile(msgspec.Struct, frozen=True):
    """One row of a card's profile table.

    `name` is ``<size>g.<memory>gb``; `id` is what efsmi's create takes. `count` is how many
    instances of it an empty card holds, `memory_mib` and `sips` are of one instance.
    """

    name: str
    id: int
    count: int
    memory_mib: int
    sips: int

    @property
    def size(self) -> int:
        """The ``<n>`` of ``<n>g.<m>gb``: how much of the card's size it takes."""
        return profile_size(self.name)


class ProfileTable(msgspec.Struct, frozen=True):
    """What a card model offers in one ECC state. `profiles` are ascending and have distinct
    sizes, as a claim asks for a size."""

    profiles: tuple[Profile, ...]

    @classmethod
    def of(cls, rows: Iterable[Profile]) -> ProfileTable:
        """Order the rows. Raises InvalidValue where there are none, where a size, name or id
        stands for two profiles, or where a number can be no card's: it would be published, and an
        API server that refuses a device refuses all others with it."""
        profiles = tuple(sorted(rows, key=lambda row: row.size))
        if not profiles:
            raise InvalidValue("a profile table has no profiles")
        for what in ("size", "name", "id"):
            if len({getattr(row, what) for row in profiles}) < len(profiles):
                names = ", ".join(row.name for row in profiles)
                raise InvalidValue(f"two of the profiles {names} have the same {what}")
        for row in profiles:
            if row.count < 1 or row.memory_mib < 1 or row.sips < 0:
                raise InvalidValue(
                    f"profile {row.name} has a count or memory below 1, or fewer than no SIPs"
                )
            if max(row.id, row.count, row.sips) > _HIGHEST:
                raise InvalidValue(f"profile {row.name} has a number above {_HIGHEST}")
        return cls(profiles)

    def __iter__(self) -> Iterator[Profile]:
        return iter(self.profiles)

    @property
    def total(self) -> int:
        """The sum of sizes that an empty card holds."""
        return max(profile.size * profile.count for profile in self.profiles)

    @property
    def sips(self) -> int:
        """How many SIPs the card has, as far as profiles reach them."""
        return max(profile.sips * profile.count for profile in self.profiles)

    def for_size(self, size: int) -> Profile:
        """The profile of that size; raises InvalidValue, naming those that exist."""
        for profile in self.profiles:
            if profile.size == size:
                return profile
        raise InvalidValue(
            f"no profile has size {size}", remedy=f"the card's profiles are {self.text}"
        )

    @property
    def text(self) -> str:
        """``1g.6gb,3g.20gb,6g.40gb``, cut at the last whole name that an attribute holds."""
        text = _SEPARATOR.join(profile.name for profile in self.profiles)
        while len(text) > ATTRIBUTE_BYTES:
            text = text.rpartition(_SEPARATOR)[0]
        return text


ProfileTableOf = Callable[[Card], ProfileTable | None]
"""The DRS profiles of a card; None while they are unknown."""


def profile_size(name: str) -> int:
    """The ``<n>`` of ``<n>g.<m>gb``; raises InvalidValue for a name of another form."""
    return profile_numbers(name)[0]


def profile_numbers(name: str) -> tuple[int, int]:
    """The size ``<n>`` and the memory ``<m>`` of ``<n>g.<m>gb``; raises InvalidValue for a name of
    another form."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidValue(f"{name!r} is not a profile name such as 3g.20gb")
    return int(match[1]), int(match[2])
