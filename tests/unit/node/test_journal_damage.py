"""What becomes of a journal that is damaged, or whose disk fails; damage at every place of it is in
tests/property."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.effects import Point
from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import encode
from tests.unit.node.damage import SMALL, damaged, ends, is_complete
from tests.unit.node.effects import Failing, Kill
from tests.unit.node.journals import CAPACITY, forgotten, opened, prepared, records_in, uids


@pytest.mark.parametrize(
    ("content", "held"),
    [
        pytest.param(b"", set(), id="empty file"),
        pytest.param(bytes(4096), set(), id="zeros"),
        pytest.param(b"not a journal at all" * 100, set(), id="garbage"),
        pytest.param(SMALL[:-1], {"uid-1"}, id="torn end"),
        pytest.param(frames.encode(b"[1]") + SMALL, {"uid-1", "uid-2"}, id="no record"),
        pytest.param(
            frames.encode(b'{"kind":"prepared","claim":{"uid":"../../etc"}}') + SMALL,
            {"uid-1", "uid-2"},
            id="hostile record",
        ),
    ],
)
def test_an_odd_file_is_used_as_far_as_it_goes(
    tmp_path: Path, content: bytes, held: set[str]
) -> None:
    (tmp_path / "journal").write_bytes(content)
    (tmp_path / "journal.new").write_bytes(b"left by a kill")
    journal = opened(tmp_path)
    assert uids(journal) == held
    journal.write(prepared(3))
    assert uids(opened(tmp_path)) == held | {"uid-3"}


def test_copies_of_damaged_files_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / "journal").write_bytes(b"garbage %d" % number)
        opened(tmp_path)
    assert [path.read_bytes() for path in damaged(tmp_path)] == [
        b"garbage %d" % n for n in range(4, 9)
    ]


def test_an_empty_journal_is_not_a_complete_one(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"")
    assert not is_complete(Journal(tmp_path))


@pytest.mark.parametrize("version", [{}, {"version": 0}, {"version": 7}], ids=str)
def test_a_journal_of_another_version_is_read_and_raised(
    tmp_path: Path, version: dict[str, Any]
) -> None:
    header = {"kind": "header", "format": "gcu-dra-journal", **version, "colour": "red"}
    odd = {"kind": "instance", "claim": dict(prepared(1).raw["claim"]), "profile": "3g"}
    content = [header, prepared(1).raw, odd]
    (tmp_path / "journal").write_bytes(b"".join(frames.encode(encode(raw)) for raw in content))
    assert (is_complete(Journal(tmp_path)), damaged(tmp_path)) == (True, [])
    opened(tmp_path).write(prepared(2))
    assert uids(opened(tmp_path)) == {"uid-1", "uid-2"}
    kept = [dict(each.raw) for each in records_in(tmp_path / "journal")]
    assert kept[0] == {**header, "version": version.get("version") or 1, "records": 3}
    assert odd in kept


def test_fields_of_a_newer_version_stay_in_the_records_that_have_them(tmp_path: Path) -> None:
    """Through compaction, and for as long as the claim is prepared."""
    raw = dict(prepared(1).raw) | {"colour": "red"}
    raw["holds"] = [{**raw["holds"][0], "shade": "dark"}]
    (tmp_path / "journal").write_bytes(SMALL[: ends(SMALL)[0]] + frames.encode(encode(raw)))
    journal = opened(tmp_path)
    for number in range(2, 200):  # more than the file has room for
        journal.write(prepared(number % 4 + 2))
    assert raw in [dict(each.raw) for each in records_in(tmp_path / "journal")]


def test_whoever_asked_is_told_where_a_damaged_file_was_kept(tmp_path: Path) -> None:
    """At the start, and when another agent's record turns out to be damaged later."""
    told: list[Path] = []
    (tmp_path / "journal").write_bytes(SMALL[3:])
    journal = Journal(tmp_path, capacity=CAPACITY, on_damaged=told.append)
    journal.open()
    end = len((tmp_path / "journal").read_bytes().rstrip(b"\0"))
    with (tmp_path / "journal").open("r+b") as file:
        file.seek(end)
        file.write(SMALL[10:60])
    journal.snapshot()
    assert [path.name for path in told] == ["journal.damaged-000001", "journal.damaged-000002"]
    assert all(path.exists() for path in told)


FAULTS = [
    pytest.param(errno.ENOSPC, id="disk full"),
    pytest.param(errno.EROFS, id="read-only"),
    pytest.param(errno.EIO, id="input/output error"),
]


@pytest.mark.parametrize("code", FAULTS)
@pytest.mark.parametrize("point", [Point.JOURNAL_APPEND, Point.JOURNAL_SYNC])
def test_a_failed_write_is_told_and_the_next_one_works(
    tmp_path: Path, point: Point, code: int
) -> None:
    disk = Failing(point, lambda: OSError(code, os.strerror(code)))
    disk.on = False
    journal = opened(tmp_path, disk)
    journal.write(prepared(1))
    before = (tmp_path / "journal").stat().st_ino
    disk.on = True
    with pytest.raises(JournalError, match="neither full nor failing"):
        journal.write(prepared(2))
    disk.on = False
    journal.write(prepared(3))
    # A later sync of the same file would call durable what the failed one has lost.
    assert point is Point.JOURNAL_APPEND or (tmp_path / "journal").stat().st_ino != before
    assert {"uid-1", "uid-3"} <= uids(journal)
    assert uids(opened(tmp_path)) == uids(journal)


def test_the_records_of_one_decision_are_written_at_once(tmp_path: Path) -> None:
    """Neither a failure nor a kill comes between them."""
    watched = Kill()
    journal = opened(tmp_path, watched)
    watched.moments.clear()
    journal.commit(lambda _: (prepared(1), prepared(2)))
    assert watched.moments.count("before journal.append") == 1
    assert uids(journal) == uids(opened(tmp_path)) == {"uid-1", "uid-2"}


@pytest.mark.parametrize(
    "point", [Point.JOURNAL_COMPACT_WRITE, Point.JOURNAL_COMPACT_RENAME, Point.JOURNAL_RESERVE]
)
def test_a_failed_compaction_loses_nothing(tmp_path: Path, point: Point) -> None:
    """What was written with room to grow is written to on a full disk as well."""
    opened(tmp_path).write(prepared(1))
    journal = opened(tmp_path, Failing(point, lambda: OSError(errno.ENOSPC, "full")))
    journal.write(prepared(2))
    assert uids(journal) == uids(opened(tmp_path)) == {"uid-1", "uid-2"}


def test_a_full_disk_is_written_to_for_as_long_as_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the file has room for: pods come and go, and others take what room there is."""
    journal = opened(tmp_path)
    there = len(list(tmp_path.iterdir()))
    make = os.open

    def full(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and not path.exists() and len(list(tmp_path.iterdir())) >= there:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return make(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    before = (tmp_path / "journal").stat().st_ino
    for number in range(200):
        journal.write(prepared(number))
        journal.write(forgotten(number))
    journal.write(prepared(1))
    assert (tmp_path / "journal").stat().st_ino != before
    assert uids(opened(tmp_path)) == {"uid-1"}


@pytest.mark.parametrize("point", [Point.JOURNAL_SET_ASIDE, Point.JOURNAL_COMPACT_WRITE])
def test_a_damaged_journal_waits_for_room_on_the_disk(tmp_path: Path, point: Point) -> None:
    """The start is tried again and again; what can be read of the file is lost at none of them, and
    they report one loss."""
    (tmp_path / "journal").write_bytes(SMALL[:-1])
    disk = Failing(point, lambda: OSError(errno.ENOSPC, "full"))
    reported: list[Path] = []
    journal = Journal(tmp_path, effects=disk, capacity=CAPACITY, on_damaged=reported.append)
    for _ in range(2):
        with pytest.raises(JournalError):
            journal.open()
    with pytest.raises(JournalError, match="has not been read"):
        journal.snapshot()
    disk.on = False
    assert not is_complete(journal)
    assert uids(journal) == {"uid-1"}
    assert reported == damaged(tmp_path)
    assert len(reported) == 1


@pytest.mark.parametrize("point", [Point.JOURNAL_SET_ASIDE, Point.JOURNAL_COMPACT_WRITE])
def test_later_damage_waits_for_room_on_the_disk(tmp_path: Path, point: Point) -> None:
    """Until then nothing is read or written, as records are missing."""
    disk = Failing(point, lambda: OSError(errno.ENOSPC, "full"))
    disk.on = False
    reported: list[Path] = []
    journal = Journal(tmp_path, effects=disk, capacity=CAPACITY, on_damaged=reported.append)
    journal.open()
    journal.mark_rebuilt(journal.losses)
    journal.write(prepared(1))
    end = len((tmp_path / "journal").read_bytes().rstrip(b"\0"))
    with (tmp_path / "journal").open("r+b") as file:
        file.seek(end)
        file.write(SMALL[10:60])
    disk.on = True
    for _ in range(2):
        with pytest.raises(JournalError):
            journal.snapshot()
    disk.on = False
    assert uids(journal) == {"uid-1"}
    assert (journal.is_complete, is_complete(Journal(tmp_path))) == (False, False)
    assert reported == damaged(tmp_path)
    assert len(reported) == 1
    assert uids(journal) == {"uid-1"}
    assert [path.name for path in damaged(tmp_path)] == ["journal.damaged-000001"]


def test_a_sector_that_cannot_be_read_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel gives what is before it, and no error."""
    (tmp_path / "journal").write_bytes(SMALL)
    first = ends(SMALL)[1]
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, first - at), at))
    assert not is_complete(Journal(tmp_path, capacity=CAPACITY))
    assert len(damaged(tmp_path)) == 1


def test_where_files_have_one_name_only_a_damaged_one_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays in its place until it is replaced, which a full disk prevents."""

    def refused(_self: Path, _target: Path) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    (tmp_path / "journal").write_bytes(SMALL[:-1])
    full = Failing(Point.JOURNAL_COMPACT_WRITE, lambda: OSError(errno.ENOSPC, "full"))
    with pytest.raises(JournalError):
        Journal(tmp_path, effects=full, capacity=CAPACITY).open()
    assert (tmp_path / "journal").read_bytes() == SMALL[:-1]
    assert uids(opened(tmp_path)) == {"uid-1"}
    assert {aside.read_bytes() for aside in damaged(tmp_path)} == {SMALL[:-1]}


def test_what_a_disk_does_not_give_back_is_kept_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read it again is for a person, with other tools."""
    (tmp_path / "journal").write_bytes(SMALL)
    journal = Journal(tmp_path, capacity=CAPACITY)

    def refuse(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", refuse)
        journal.open()
    assert (journal.is_complete, uids(journal)) == (False, set())
    journal.write(prepared(1))
    assert uids(opened(tmp_path)) == {"uid-1"}
    [aside] = damaged(tmp_path)
    assert aside.read_bytes() == SMALL


def test_a_file_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    journal = Journal(tmp_path)
    assert not is_complete(journal)
    [aside] = damaged(tmp_path)
    assert aside.is_dir()
    journal.write(prepared(1))


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="state"):
        Journal(tmp_path / "file" / "state").open()


def test_a_removed_directory_is_made_again_for_all_agents(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "state"), opened(tmp_path / "state")
    one.write(prepared(1))
    assert uids(other) == {"uid-1"}
    shutil.rmtree(tmp_path / "state")
    one.write(prepared(2))
    other.write(prepared(3))
    assert uids(one) == uids(other) == {"uid-1", "uid-2", "uid-3"}
