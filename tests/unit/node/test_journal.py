from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_driver.model.claim import ClaimRef
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import JournalError, Refused
from dra_driver.node import frames
from dra_driver.node.journal import Journal
from dra_driver.node.ledger import Ledger
from dra_driver.node.records import Kind, Record, decode, encode, record
from tests.unit.node.world import Failing, hold

CAPACITY = 1 << 13


def ref(number: int) -> ClaimRef:
    return ClaimRef("team", f"claim-{number}", f"uid-{number}")


def prepared(number: int) -> Record:
    return record(Kind.PREPARED, ref(number), (hold(number % 4),))


def forgotten(number: int) -> Record:
    return record(Kind.FORGOTTEN, ref(number), ())


def opened(directory: Path, effects: Effects | None = None) -> Journal:
    journal = Journal(directory, effects=effects, capacity=CAPACITY)
    if not journal.open().complete:
        journal.rebuilt()
    return journal


def uids(journal: Journal) -> set[str]:
    return set(journal.snapshot().claims)


def records_in(path: Path) -> list[Record]:
    return [decode(payload) for payload in frames.scan(path.read_bytes()).payloads]


def test_a_new_directory_becomes_a_journal_that_is_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    opening = journal.open()
    assert (opening.found, opening.set_aside, opening.complete) == (False, None, False)
    journal.write(prepared(1))
    assert not Journal(tmp_path / "state").open().complete
    journal.rebuilt()
    again = Journal(tmp_path / "state")
    assert again.open().complete
    assert again.snapshot() == journal.snapshot()
    assert uids(again) == {"uid-1"}


def test_files_are_for_the_agent_alone(tmp_path: Path) -> None:
    opened(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "state").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_refusal_writes_nothing(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    before = (tmp_path / "journal").read_bytes()

    def refuse(ledger: Ledger) -> Iterable[Record]:
        raise Refused("no")

    with pytest.raises(Refused):
        journal.commit(refuse)
    assert (tmp_path / "journal").read_bytes() == before


def test_a_full_file_is_compacted_to_what_is_held(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.write(prepared(0))
    for number in range(1, 200):
        journal.write(prepared(number))
        journal.write(forgotten(number))
    assert (tmp_path / "journal").stat().st_size == CAPACITY
    assert uids(journal) == {"uid-0"}
    assert uids(opened(tmp_path)) == {"uid-0"}
    assert len(records_in(tmp_path / "journal")) == 2


def test_the_file_grows_with_what_is_held(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    for number in range(100):
        journal.write(prepared(number))
    assert (tmp_path / "journal").stat().st_size > CAPACITY
    assert len(uids(opened(tmp_path))) == 100


def test_two_journals_on_one_directory_see_each_other(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    for number in range(0, 120, 2):
        one.write(prepared(number))
        other.write(prepared(number + 1))
        one.write(forgotten(number + 1))
        other.write(forgotten(number))
    one.write(prepared(500))
    assert uids(one) == uids(other) == uids(opened(tmp_path)) == {"uid-500"}


def test_a_rule_sees_what_the_other_agent_has_just_written(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    one.write(prepared(0))

    def decide(ledger: Ledger) -> Iterable[Record]:
        ledger.admit(ref(4), (hold(0),))
        return [prepared(4)]

    with pytest.raises(Refused, match="team/claim-0"):
        other.commit(decide)


class SlowDisk(Effects):
    """Counts syncs, lets none begin before `go`, and tells of each record appended."""

    def __init__(self) -> None:
        self.syncs = 0
        self.appended = threading.Semaphore(0)
        self.go = threading.Event()

    def after(self, point: Point) -> None:
        if point is Point.JOURNAL_APPEND:
            self.appended.release()

    def before(self, point: Point) -> None:
        if point is Point.JOURNAL_SYNC:
            self.syncs += 1
            assert self.go.wait(10)


def write_at_once(journal: Journal, disk: SlowDisk, count: int) -> list[JournalError]:
    """Write from `count` threads, let the first sync begin when all have appended; errors."""
    errors: list[JournalError] = []

    def write(number: int) -> None:
        try:
            journal.write(prepared(number))
        except JournalError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert disk.appended.acquire(timeout=10)
    disk.go.set()
    for thread in threads:
        thread.join(10)
    return errors


def test_threads_share_a_sync(tmp_path: Path) -> None:
    """All but the first of the waiting threads find their record durable already."""
    disk = SlowDisk()
    opened(tmp_path).close()
    journal = opened(tmp_path, disk)
    assert not write_at_once(journal, disk, 8)
    assert len(uids(journal)) == 8
    assert disk.syncs == 2


def test_a_failed_sync_is_the_failure_of_all_who_waited_for_it(tmp_path: Path) -> None:
    """A later sync of the same file would succeed without having written their records."""

    class Breaking(SlowDisk):
        def before(self, point: Point) -> None:
            super().before(point)
            if point is Point.JOURNAL_SYNC and self.syncs == 1:
                raise OSError(errno.EIO, "bad sector")

    disk = Breaking()
    opened(tmp_path).close()
    journal = opened(tmp_path, disk)
    assert len(write_at_once(journal, disk, 8)) == 8
    journal.write(prepared(8))
    assert len(uids(opened(tmp_path))) == 9


def test_every_record_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    journal = opened(tmp_path)
    fdatasync = os.fdatasync

    def sync(fd: int) -> None:
        synced.append(os.pread(fd, CAPACITY, 0))
        fdatasync(fd)

    monkeypatch.setattr(os, "fdatasync", sync)
    journal.write(prepared(1))
    journal.snapshot()
    assert len(synced) == 1
    assert encode(prepared(1).raw) in synced[0]


SMALL = b"".join(
    frames.encode(encode(raw))
    for raw in (
        {"kind": "header", "format": "gcu-dra-journal", "version": 1},
        prepared(1).raw,
        prepared(2).raw,
    )
)


@pytest.mark.parametrize("place", range(len(SMALL) + 1))
def test_any_flipped_byte_costs_at_most_its_record(tmp_path: Path, place: int) -> None:
    content = bytearray(SMALL + bytes(100))
    content[place] ^= 0x41
    (tmp_path / "journal").write_bytes(content)
    journal = Journal(tmp_path, capacity=CAPACITY)
    opening = journal.open()
    assert len(uids(journal)) >= 1
    assert not opening.complete
    assert opening.set_aside is not None
    assert opening.set_aside.read_bytes() == bytes(content)
    # What was damaged is gone from the file itself: the next start is a clean one.
    journal.rebuilt()
    again = Journal(tmp_path, capacity=CAPACITY).open()
    assert (again.complete, again.set_aside) == (True, None)


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
    kept = sorted(tmp_path.glob("journal.damaged-*"))
    assert [path.read_bytes() for path in kept] == [b"garbage %d" % n for n in range(4, 9)]


def test_an_empty_journal_is_not_a_complete_one(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"")
    assert not Journal(tmp_path).open().complete


def test_the_header_of_a_newer_version_is_kept(tmp_path: Path) -> None:
    newer = {"kind": "header", "format": "gcu-dra-journal", "version": 7, "colour": "red"}
    odd = {"kind": "instance", "claim": dict(prepared(1).raw["claim"]), "profile": "3g"}
    (tmp_path / "journal").write_bytes(
        b"".join(frames.encode(encode(raw)) for raw in (newer, prepared(1).raw, odd))
    )
    opened(tmp_path).write(prepared(2))
    opened(tmp_path)
    kept = [dict(entry.raw) for entry in records_in(tmp_path / "journal")]
    assert kept[0] == newer
    assert odd in kept


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
    disk.on = True
    with pytest.raises(JournalError, match="neither full nor failing"):
        journal.write(prepared(2))
    disk.on = False
    journal.write(prepared(3))
    assert {"uid-1", "uid-3"} <= uids(journal)
    assert uids(opened(tmp_path)) == uids(journal)


def test_after_a_failed_sync_nothing_is_called_durable_by_a_later_one(tmp_path: Path) -> None:
    disk = Failing(Point.JOURNAL_SYNC, lambda: OSError(errno.EIO, "bad sector"))
    disk.on = False
    journal = opened(tmp_path, disk)
    before = (tmp_path / "journal").stat().st_ino
    disk.on = True
    with pytest.raises(JournalError):
        journal.write(prepared(1))
    disk.on = False
    journal.write(prepared(2))
    assert (tmp_path / "journal").stat().st_ino != before


@pytest.mark.parametrize("point", [Point.JOURNAL_COMPACT_WRITE, Point.JOURNAL_COMPACT_RENAME])
def test_a_failed_compaction_loses_nothing(tmp_path: Path, point: Point) -> None:
    """What was written with room to grow is written to on a full disk as well."""
    opened(tmp_path).write(prepared(1))
    journal = opened(tmp_path, Failing(point, lambda: OSError(errno.ENOSPC, "full")))
    journal.write(prepared(2))
    assert uids(journal) == uids(opened(tmp_path)) == {"uid-1", "uid-2"}


def test_a_loss_is_remembered_until_it_is_made_good(tmp_path: Path) -> None:
    """An agent that is killed while it rebuilds leaves a journal that reads well."""
    opened(tmp_path).write(prepared(1))
    content = bytearray((tmp_path / "journal").read_bytes())
    content[len(content.rstrip(b"\0")) - 3] ^= 1
    (tmp_path / "journal").write_bytes(content)
    for _ in range(2):
        journal = Journal(tmp_path)
        assert not journal.open().complete
    journal.rebuilt()
    again = Journal(tmp_path).open()
    assert (again.complete, again.set_aside) == (True, None)


def test_a_damaged_journal_that_cannot_be_written_anew_is_not_written_to(tmp_path: Path) -> None:
    opened(tmp_path).write(prepared(1))
    (tmp_path / "journal").write_bytes((tmp_path / "journal").read_bytes()[3:])
    full = Failing(Point.JOURNAL_COMPACT_WRITE, lambda: OSError(errno.ENOSPC, "full"))
    with pytest.raises(JournalError):
        opened(tmp_path, full)


def test_a_file_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    journal = Journal(tmp_path)
    opening = journal.open()
    assert not opening.complete
    assert opening.set_aside is not None
    assert opening.set_aside.is_dir()
    journal.write(prepared(1))


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="state"):
        Journal(tmp_path / "file" / "state").open()


def test_a_removed_journal_is_written_again_from_memory(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.write(prepared(1))
    (tmp_path / "journal").unlink()
    journal.write(prepared(2))
    assert uids(opened(tmp_path)) == {"uid-1", "uid-2"}


def test_a_removed_directory_is_made_again_for_all_agents(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "state"), opened(tmp_path / "state")
    one.write(prepared(1))
    assert uids(other) == {"uid-1"}
    shutil.rmtree(tmp_path / "state")
    one.write(prepared(2))
    other.write(prepared(3))
    assert uids(one) == uids(other) == {"uid-1", "uid-2", "uid-3"}


@settings(deadline=None)
@given(st.data())
def test_any_history_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Two agents write at random, and one of them starts anew at random."""
    directory = tmp_path_factory.mktemp("state")
    agents = [opened(directory), opened(directory)]
    model: dict[str, str] = {}
    kinds = st.sampled_from(list(Kind))
    for number in data.draw(st.lists(st.integers(0, 5), max_size=40)):
        who = data.draw(st.integers(0, 1))
        if data.draw(st.integers(0, 9)) == 0:
            agents[who].close()
            agents[who] = opened(directory)
        kind = data.draw(kinds)
        agents[who].write(record(kind, ref(number), (hold(number % 4),)))
        if kind is Kind.FORGOTTEN:
            model.pop(f"uid-{number}", None)
        else:
            model[f"uid-{number}"] = kind.value
        reader = agents[data.draw(st.integers(0, 1))]
        assert {u: h.state.value for u, h in reader.snapshot().claims.items()} == model
    for agent in agents:
        agent.close()
