"""Folders for tests that make thousands of journals."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def fast_path(tmp_path: Path) -> Iterator[Path]:
    """Like `tmp_path`, but in memory where the system has such a place: a sync costs nothing there.
    What is killed in these tests is a process and not the machine, so syncs decide nothing."""
    if not _MEMORY.is_dir():
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(dir=_MEMORY, prefix="gcu-"))
    yield path
    shutil.rmtree(path)
