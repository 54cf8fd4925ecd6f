"""A cache of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is the machine's cache for the length of the test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GCU_DRA_CACHE", str(folder))
    return folder
