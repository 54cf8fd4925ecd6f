"""Files on which locks are taken."""

from __future__ import annotations

import os
from pathlib import Path

from dra_driver.model.errors import JournalError


def open_lock(path: Path) -> int:
    """A descriptor of the file, made with its folder when it is first needed; raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def lock_error(path: Path, error: OSError) -> JournalError:
    """For a lock that failed with `error`."""
    return JournalError(
        f"the lock {path} cannot be taken: {error.strerror}",
        remedy="check that the disk is neither full nor failing nor read-only",
    )
