"""Agents share the state directory, and whoever removes it is alone in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_driver.model.errors import JournalError
from dra_driver.node.residence import DirectoryGone, Residence, alone


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "plugins" / "gcu.enflame.com"


def test_agents_share_it_and_nobody_removes_it_meanwhile(state: Path) -> None:
    older, newer = Residence(state), Residence(state)
    older.enter()
    older.enter()
    newer.enter()
    for each in (older, newer):
        with alone(state) as is_alone:
            assert not is_alone
        os.close(each._fd)  # as its process's end does
    with alone(state) as is_alone:
        assert is_alone


def test_no_agent_enters_while_it_is_removed(state: Path) -> None:
    agent = Residence(state)
    with alone(state) as is_alone:
        assert is_alone
        with pytest.raises(JournalError, match="is being removed after an uninstall"):
            agent.enter()
        state.rmdir()
    agent.enter()
    assert state.is_dir()
    with alone(state) as is_alone:
        assert not is_alone


def test_who_comes_while_it_goes_has_the_next_one(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is removed between its making and its opening, and between that and its locking."""
    state.mkdir(parents=True)
    opened = os.open
    moments = ["before", "after", "never", "never", "never"]

    def open_late(path: Path, flags: int) -> int:
        moment = moments.pop(0)
        if moment == "before":
            state.rmdir()
        fd = opened(path, flags)
        if moment == "after":
            state.rmdir()
        return fd

    monkeypatch.setattr(os, "open", open_late)
    agent = Residence(state)
    agent.enter()
    assert moments == ["never"]
    with alone(state) as is_alone:
        assert not is_alone


def test_an_agent_on_a_mount_of_what_was_removed_is_told(state: Path) -> None:
    """The path leads to what is nowhere on the node any more, as a mount in a container does."""
    state.mkdir(parents=True)
    fd = os.open(state, os.O_RDONLY)
    state.rmdir()
    try:
        with pytest.raises(DirectoryGone, match="was removed while this container started"):
            Residence(Path(f"/proc/self/fd/{fd}")).enter()
    finally:
        os.close(fd)


def test_what_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("a file is in the way")
    with pytest.raises(JournalError, match="cannot be used: Not a directory"):
        Residence(tmp_path / "plugins" / "gcu.enflame.com").enter()
