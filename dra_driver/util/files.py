"""Files on which locks are taken, and files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dra_driver.model.errors import GcuError, JournalError
from dra_driver.util.os_errors import OsErrorAs

DISK_REMEDY: Final = "check that the disk is neither full nor failing nor read-only"


def open_lock(path: Path) -> int:
    """A descriptor of the file, made with its folder when it is first needed; raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def lock_errors(path: Path, error: type[GcuError] = JournalError) -> OsErrorAs:
    """Around taking a lock on the file."""
    return OsErrorAs(error, "the lock", path, remedy=DISK_REMEDY)


def write_synced(path: Path, content: bytes) -> None:
    """Write the whole file, which may exist, preallocated. It is on the disk on return."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        file.truncate()
        os.fsync(file.fileno())


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Remove an incomplete file: on a full disk it would occupy the missing space."""
    try:
        yield
    except OSError:
        path.unlink(missing_ok=True)
        raise
