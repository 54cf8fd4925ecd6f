"""Copies of the last few damaged journals, for a person to examine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dra_driver.util.files import whole, write_synced

_LIMIT: Final = 5
_PREFIX: Final = "journal.damaged-"


class Quarantine:
    """Files ``journal.damaged-<number>`` in a directory. Each method raises OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def link(self, journal: Path) -> Path:
        """Give the file a second name, which takes no space and reads nothing from a damaged disk.
        Returns the name; the earlier one if the file has one, because it could not be replaced."""
        older = self._older()
        if older and older[-1].samefile(journal):
            return older[-1]
        name = self._next()
        try:
            name.hardlink_to(journal)
        except OSError:  # a file system without hard links
            with whole(name):
                write_synced(name, journal.read_bytes())
        return name

    def rename(self, journal: Path) -> Path:
        """Move the file here."""
        name = self._next()
        journal.rename(name)
        return name

    def _older(self) -> list[Path]:
        return sorted(self._directory.glob(f"{_PREFIX}*"))

    def _next(self) -> Path:
        """A new name, once there is room for one more file."""
        older = self._older()
        for path in older[: max(0, len(older) - _LIMIT + 1)]:
            path.unlink(missing_ok=True)
        last = older[-1].name.removeprefix(_PREFIX) if older else "0"
        number = int(last) + 1 if last.isdecimal() else len(older) + 1
        return self._directory / f"{_PREFIX}{number:06d}"
