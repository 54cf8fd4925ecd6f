"""The node that the tests of the reconcile loop need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.node.drs_world import DrsWorld, tool


@pytest.fixture
def world(tmp_path: Path) -> DrsWorld:
    return DrsWorld(tmp_path, tool=tool(1))
