"""What claims leave in the interpreter's table of names, where each Path puts its parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.hardware.sysfs import Sysfs
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.locks import Locks
from tests.unit.node.world import CARDS


def test_a_claim_leaves_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [card, *_] = CARDS
    (tmp_path / f"sys/bus/pci/devices/{card}/enflame/gcu3").mkdir(parents=True)
    cdi, locks, sysfs = CdiDirectory(tmp_path), Locks(tmp_path), Sysfs(tmp_path)

    def cycle(uid: str) -> None:
        with locks.claim(uid), locks.cards([card]):
            assert sysfs.minor(card) == 3
            cdi.write(uid, b"{}")
            assert cdi.remove(uid)

    cycle("uid-1")
    names: list[str] = []

    def intern(name: str, put: Callable[[str], str] = sys.intern) -> str:
        names.append(name)
        return put(name)

    monkeypatch.setattr(sys, "intern", intern)
    assert Path("seen").name in names  # that is where a Path puts them
    names.clear()
    cycle("uid-2")
    assert names == []
