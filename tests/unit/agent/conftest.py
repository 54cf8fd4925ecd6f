"""A node of one card with the reconcile loop on it, and two cards that are watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.agent.cards.watched import Watched
from tests.unit.agent.reconcile_rig import Rig
from tests.unit.node.drs_world import DrsWorld, tool


@pytest.fixture
def world(tmp_path: Path) -> DrsWorld:
    return DrsWorld(tmp_path, tool=tool(1))


@pytest.fixture
def rig(world: DrsWorld) -> Rig:
    return Rig(world)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "machine")
