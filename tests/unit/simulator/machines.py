"""Machines for the tests of the simulator; device nodes are plain files unless a test asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dra_driver.simulator.machine import SimulatedMachine

MakeMachine = Callable[..., SimulatedMachine]


@pytest.fixture
def make_machine(tmp_path: Path) -> MakeMachine:
    """Make a machine of `cards` S60 (0000:0d:00.0, 0000:0e:00.0, …) with ECC; other keys of its
    description, and of every card by `card`, can be given."""

    def make(
        cards: int = 1, *, card: dict[str, Any] | None = None, **keys: Any
    ) -> SimulatedMachine:
        described = [
            {"bdf": f"0000:{0x0D + at:02x}:00.0", "model": "S60", **(card or {})}
            for at in range(cards)
        ]
        root = tmp_path / "node"
        return SimulatedMachine.create({"cards": described, **keys}, root, plain_device_files=True)

    return make


def snapshot(root: Path) -> dict[str, str]:
    """Every path below sys and dev with its content, links by their target."""
    found = {}
    for top in ("sys", "dev"):
        for path in (root / top).rglob("*"):
            if path.is_symlink():
                found[str(path.relative_to(root))] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path.relative_to(root))] = path.read_text()
    return found


def with_instance(machine: SimulatedMachine, index: int = 0) -> None:
    machine.efsmi("-i", str(index), "--drs", "on")
    machine.efsmi("-i", str(index), "--drs", "--create-instance", "0")
