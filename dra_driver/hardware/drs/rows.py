"""Reading what ``efsmi`` prints about DRS: rows known by a field ``<n>g.<m>gb``.

Of these outputs only the fields and their order are public (vendor code that reads them), so
borders, headers and anything else without such a field are passed over.
"""

from __future__ import annotations

import re

from dra_driver.hardware.efsmi.field_reader import at_most, shown
from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.instance import Instance
from dra_driver.model.profile import Profile, ProfileTable

_PROFILE = re.compile(r"[0-9]{1,3}g\.[0-9]{1,6}gb")
_INDEX = re.compile(r"[0-9]{1,4}")
_MEMORY = re.compile(r"([0-9]{1,9})(?:MiB)?")


def parse_instances(text: str, index: int) -> tuple[Instance, ...]:
    """The instances of card `index` in ``efsmi -i N -L``: index, profile, instance id, uuid.

    Raises HardwareError for a row that is not so, as a missed instance could be given away, where
    there are too many, and where several have one uuid, by which they are told apart.
    """
    found = tuple(_instance(row, instance=2, uuid=3, count=4) for row in _rows(text, index))
    different = set(found)
    if len({one.uuid for one in different}) < len(different):
        raise HardwareError(
            f"`efsmi` prints one uuid for several DRS instances of card {index}",
            remedy="report this efsmi version",
        )
    return found


def parse_older_instances(text: str, index: int) -> tuple[Instance, ...]:
    """The same in ``--drs --list-instance`` of older tools: index, profile, profile id, instance
    id, placement; there is no uuid. Raises HardwareError."""
    return tuple(_instance(row, instance=3, count=4) for row in _rows(text, index))


def parse_summary_instances(text: str, index: int) -> tuple[Instance, ...]:
    """The same in the summary's table ``GCU instances``: index, profile, instance id; there is no
    uuid. Raises HardwareError."""
    return tuple(_instance(row, instance=2, count=3) for row in _rows(text, index))


def parse_profiles(text: str, index: int) -> ProfileTable | None:
    """The table of ``--drs --list-profile``: index, profile, profile id, how many a card holds,
    memory, SIPs. None where there is no row; raises HardwareError for what makes no table."""
    rows = [_profile(row) for row in _rows(text, index)]
    try:
        return ProfileTable.of(rows) if rows else None
    except InvalidValue as error:
        raise HardwareError(f"`efsmi` lists profiles that make no table: {error}") from error


def _rows(text: str, index: int) -> tuple[list[str], ...]:
    """The fields of card `index`'s rows. A row without a readable index counts as this card's, so
    that parsing it raises an error, and it is not passed over."""
    fields = (line.replace("|", " ").replace(" MiB", "MiB").split() for line in text.splitlines())
    rows = (row for row in fields if any(map(_PROFILE.fullmatch, row)))
    own = (row for row in rows if _INDEX.fullmatch(row[0]) is None or int(row[0]) == index)
    return at_most(own, f"efsmi -i {index}")


def _instance(row: list[str], *, instance: int, count: int, uuid: int | None = None) -> Instance:
    try:
        if len(row) < count or not _begins_known(row):
            raise _unreadable(row)
        return Instance(
            id=int(row[instance]), profile=row[1], uuid=None if uuid is None else row[uuid]
        )
    except (ValueError, InvalidValue) as error:
        raise _unreadable(row) from error


def _profile(row: list[str]) -> Profile:
    try:
        name, number, count, memory, sips = row[1:6]
        amount = _MEMORY.fullmatch(memory)
        if not _begins_known(row) or amount is None:
            raise _unreadable(row)
        return Profile(name, int(number), int(count), int(amount[1]), int(sips))
    except ValueError as error:
        raise _unreadable(row) from error


def _begins_known(row: list[str]) -> bool:
    return _INDEX.fullmatch(row[0]) is not None and _PROFILE.fullmatch(row[1]) is not None


def _unreadable(row: list[str]) -> HardwareError:
    return HardwareError(
        f"`efsmi` prints a DRS row of an unknown form: {shown(' '.join(row))}",
        remedy="report this efsmi version",
    )
