"""Folders for tests that make thousands of journals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A new folder, in memory where the system has such a place: a sync costs nothing there. What
    is killed in these tests is a process and not the machine, so syncs decide nothing."""
    place = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="gcu-") as path:
        yield Path(path)
