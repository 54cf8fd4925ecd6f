"""A DRS instance: a partition of a card that exists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from dra_driver.model.errors import InvalidValue
from dra_driver.model.profile import profile_size

_UUID: Final = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,62}[0-9A-Za-z])?")
_HIGHEST: Final = 2**31 - 1  # an id ends in JSON, which has no larger ints for everybody


class Instance(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One instance of a card, as efsmi lists it.

    `id` counts within the card and may be used again; `uuid` is None where the tool is too old
    to print one. Raises InvalidValue for values that could not have come from efsmi, as they end
    in a container's environment.
    """

    id: int
    profile: str
    uuid: str | None = None

    def __post_init__(self) -> None:
        profile_size(self.profile)
        known = self.uuid is None or _UUID.fullmatch(self.uuid) is not None
        if not known or not 0 <= self.id <= _HIGHEST:
            raise InvalidValue(f"{self.id}, {self.uuid!r} are not id and uuid of a DRS instance")

    def is_same(self, other: Instance) -> bool:
        """Whether both are one instance of a card: by uuid where both tell one, since an id may
        be another instance's after a reboot."""
        if self.uuid is not None and other.uuid is not None:
            return self.uuid == other.uuid
        return (self.id, self.profile) == (other.id, other.profile)

    def is_in(self, others: Iterable[Instance]) -> bool:
        """Whether one of `others` is the same instance."""
        return any(self.is_same(other) for other in others)

    def __str__(self) -> str:
        return f"{self.profile} {self.uuid or f'number {self.id}'}"
