"""Copies of the last few damaged journals, for a person to examine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_LIMIT: Final = 5
_PREFIX: Final = "journal.damaged-"


def quarantine(journal: Path) -> Path:
    """Give the file a second name beside it, which takes no space and reads nothing from a damaged
    disk. Returns the name; the earlier one if the file has one, because it could not be replaced.

    On a file system without hard links, and for what is no file, the name is its only one. Raises
    OSError.
    """
    older = sorted(journal.parent.glob(f"{_PREFIX}*"))
    if older and older[-1].samefile(journal):
        return older[-1]
    for path in older[: max(0, len(older) - _LIMIT + 1)]:
        path.unlink(missing_ok=True)
    last = older[-1].name.removeprefix(_PREFIX) if older else "0"
    number = int(last) + 1 if last.isdecimal() else len(older) + 1
    name = journal.with_name(f"{_PREFIX}{number:06d}")
    try:
        name.hardlink_to(journal)
    except OSError:
        journal.rename(name)
    return name
