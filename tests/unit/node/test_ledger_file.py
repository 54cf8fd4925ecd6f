"""Reading a journal without changing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.records import CardRecordKind, card_record
from tests.unit.node.damage import append_torn
from tests.unit.node.journals import forgotten, opened, prepared
from tests.unit.node.ledger_file import read_ledger
from tests.unit.node.world import CARDS


def test_it_is_what_an_agent_has_and_nothing_changes(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    for each in (
        prepared(1),
        prepared(2),
        forgotten(1),
        card_record(CardRecordKind.DRS_ON, CARDS[3]),
    ):
        journal.write(each)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert read_ledger(tmp_path) == journal.snapshot()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_where_there_is_none_nothing_is_held(tmp_path: Path) -> None:
    assert not read_ledger(tmp_path / "nowhere").claims
    assert list(tmp_path.iterdir()) == []


def test_a_last_record_that_was_not_written_completely_is_left_out(tmp_path: Path) -> None:
    opened(tmp_path).write(prepared(1))
    append_torn(tmp_path, prepared(2))
    assert set(read_ledger(tmp_path).claims) == {"uid-1"}


HEADLESS = frames.encode(b'{"kind":"drs-off","card":"0000:01:00.0"}')


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0" * 64, id="zeros"),
        pytest.param(b"something else", id="no frames"),
        pytest.param(HEADLESS, id="no header"),
        pytest.param(frames.encode(b'{"kind":"header"}') + frames.encode(b"["), id="no JSON"),
        pytest.param(frames.encode(b'{"kind":"header"}') + HEADLESS[:-1], id="cut"),
    ],
)
def test_one_that_is_damaged_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").write_bytes(content)
    with pytest.raises(JournalError, match="is damaged"):
        read_ledger(tmp_path)


def test_one_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(JournalError, match="cannot be read: Is a directory"):
        read_ledger(tmp_path)
