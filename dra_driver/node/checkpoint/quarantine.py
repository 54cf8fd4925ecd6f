"""Damaged journals that are kept for a person to examine: the last few of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_KEPT: Final = 5
_PREFIX: Final = "journal.damaged-"


class Quarantine:
    """Files ``journal.damaged-<number>`` in a directory. Each method raises OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def link(self, journal: Path) -> Path:
        """Give the file a second name. That takes no room, and reads nothing that the disk may not
        return. A file that has such a name already, as it could not be replaced, keeps that one."""
        older = self._older()
        if older and older[-1].samefile(journal):
            return older[-1]
        kept = self._next()
        try:
            kept.hardlink_to(journal)
        except OSError:  # a file system without hard links
            _copy(journal, kept)
        return kept

    def rename(self, journal: Path) -> Path:
        """Move the file here."""
        kept = self._next()
        journal.rename(kept)
        return kept

    def _older(self) -> list[Path]:
        return sorted(self._directory.glob(f"{_PREFIX}*"))

    def _next(self) -> Path:
        """A new name, once there is room for one more file."""
        older = self._older()
        for path in older[: max(0, len(older) - _KEPT + 1)]:
            path.unlink(missing_ok=True)
        last = older[-1].name.removeprefix(_PREFIX) if older else "0"
        number = int(last) + 1 if last.isdecimal() else len(older) + 1
        return self._directory / f"{_PREFIX}{number:06d}"


def _copy(source: Path, target: Path) -> None:
    """Leaves no half of a file: on a full disk it would take the room that is missing."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
            file.write(source.read_bytes())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        raise
