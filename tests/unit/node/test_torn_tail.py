"""A last record that was not written completely: the end of the journal, and no damage; one that
ends anywhere is in tests/property."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint.journal import Journal
from tests.unit.node.damage import append_torn, damaged, is_complete
from tests.unit.node.journals import CAPACITY, opened, prepared, uids
from tests.unit.node.ledger_file import read_ledger


def test_what_a_killed_agent_did_not_write_completely_is_no_damage_to_another(
    tmp_path: Path,
) -> None:
    told: list[Path] = []
    opened(tmp_path).write(prepared(1))
    journal = Journal(tmp_path, capacity=CAPACITY, on_damaged=told.append)
    journal.open()
    append_torn(tmp_path, prepared(2))
    assert uids(journal) == {"uid-1"}
    append_torn(tmp_path, prepared(2))
    journal.write(prepared(3))
    assert (told, journal.is_complete) == ([], True)
    again = Journal(tmp_path)
    assert (is_complete(again), uids(again)) == (True, {"uid-1", "uid-3"})


def test_what_was_there_when_the_file_was_made_is_no_torn_record(tmp_path: Path) -> None:
    """It was synced then, as a whole, so it may have been answered."""
    opened(tmp_path).write(prepared(1))
    opened(tmp_path).close()
    content = (tmp_path / "journal").read_bytes()
    used = len(content.rstrip(b"\0"))
    (tmp_path / "journal").write_bytes(content[: used - 9].ljust(len(content), b"\0"))
    with pytest.raises(JournalError, match="is damaged"):
        read_ledger(tmp_path)
    assert not is_complete(Journal(tmp_path))
    assert len(damaged(tmp_path)) == 1


def test_a_write_that_the_disk_cuts_is_told_and_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path)
    journal.write(prepared(1))
    pwrite = os.pwrite
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda fd, text, at: pwrite(fd, text[: len(text) // 2], at))
        with pytest.raises(JournalError, match="neither full nor failing"):
            journal.write(prepared(2))
    journal.write(prepared(3))
    assert journal.is_complete
    assert uids(journal) == uids(opened(tmp_path)) == {"uid-1", "uid-3"}
    assert not list(tmp_path.glob("journal.damaged-*"))
