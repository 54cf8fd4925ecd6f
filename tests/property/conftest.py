"""Fixtures of the kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.node.folders import fast_folder


@pytest.fixture
def fast_path() -> Iterator[Path]:
    """Like `tmp_path`, but in memory where that can be."""
    with fast_folder() as path:
        yield path
