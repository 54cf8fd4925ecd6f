"""The folders of a kubelet."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root directory, with a short path, as sockets lie below it."""
    root = tmp_path_factory.mktemp("k")
    for folder in ("plugins", "plugins_registry"):
        (root / folder).mkdir()
    return root
