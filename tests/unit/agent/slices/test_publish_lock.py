"""Whose turn it is to publish: one agent's at a time, whatever becomes of the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dra_driver.agent.slices.publisher import PublishLock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "publisher.lock"


def test_the_first_one_has_it_until_it_gives_it(path: Path) -> None:
    older, newer = PublishLock(path), PublishLock(path)
    assert older.try_acquire()
    assert older.try_acquire()
    assert not newer.try_acquire()
    newer.release()
    assert not newer.try_acquire(), "it was not the newer one's to give"
    older.release()
    assert newer.try_acquire()
    assert not older.try_acquire()


def test_a_folder_that_was_removed_makes_no_two(path: Path) -> None:
    older, newer = PublishLock(path), PublishLock(path)
    assert older.try_acquire()
    shutil.rmtree(path.parent)
    assert newer.try_acquire()
    assert not older.try_acquire()
    newer.release()
    assert older.try_acquire()
