"""The journal: what is written is durable, read again, and shared by two agents."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import JournalError, Refused
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, Record, encode, record
from tests.unit.node.damage import damaged, is_complete
from tests.unit.node.journals import CAPACITY, forgotten, opened, prepared, records_in, ref, uids
from tests.unit.node.world import hold


def test_a_new_directory_becomes_a_journal_that_is_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    assert not is_complete(journal)
    assert damaged(tmp_path / "state") == []
    journal.write(prepared(1))
    assert not is_complete(Journal(tmp_path / "state"))
    journal.mark_rebuilt(journal.losses)
    again = Journal(tmp_path / "state")
    assert is_complete(again)
    assert again.snapshot() == journal.snapshot()
    assert uids(again) == {"uid-1"}


READS: list[Callable[[Journal], object]] = [
    Journal.snapshot,
    lambda journal: journal.mark_rebuilt(0),
    lambda journal: journal.write(prepared(2)),
]


@pytest.mark.parametrize("read", READS, ids=["snapshot", "rebuilt", "write"])
def test_nothing_reads_a_journal_that_was_not_opened(
    tmp_path: Path, read: Callable[[Journal], object]
) -> None:
    """It would be written again from a memory that has nothing, and its loss be hidden."""
    state = tmp_path / "state"
    journal = Journal(state)
    assert not journal.is_complete
    with pytest.raises(JournalError, match="has not been read"):
        read(journal)
    assert not state.exists()
    assert not is_complete(journal)


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
            assert self.go.wait(60)


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
        assert disk.appended.acquire(timeout=60)
    disk.go.set()
    for thread in threads:
        thread.join(60)
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
    journal, other = opened(tmp_path), opened(tmp_path)
    fdatasync = os.fdatasync

    def sync(fd: int) -> None:
        synced.append(os.pread(fd, CAPACITY, 0))
        fdatasync(fd)

    monkeypatch.setattr(os, "fdatasync", sync)
    journal.write(prepared(1))
    journal.snapshot()
    assert len(synced) == 1
    assert encode(prepared(1).raw) in synced[0]
    other.write(prepared(2))
    journal.write(prepared(3))
    assert len(synced) == 3
    assert encode(prepared(3).raw) in synced[2]


@given(st.data())
def test_any_history_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Two agents write at random, and one of them starts anew at random."""
    directory = tmp_path_factory.mktemp("state")
    agents = [opened(directory), opened(directory)]
    model: dict[str, str] = {}
    kinds = st.sampled_from(list(ClaimStep))
    for number in data.draw(st.lists(st.integers(0, 5), max_size=40)):
        who = data.draw(st.integers(0, 1))
        if data.draw(st.integers(0, 9)) == 0:
            agents[who].close()
            agents[who] = opened(directory)
        kind = data.draw(kinds)
        agents[who].write(record(kind, ref(number), (hold(number % 4),)))
        if kind is ClaimStep.FORGOTTEN:
            model.pop(f"uid-{number}", None)
        else:
            model[f"uid-{number}"] = kind.value
        reader = agents[data.draw(st.integers(0, 1))]
        assert {u: h.state.value for u, h in reader.snapshot().claims.items()} == model
    for agent in agents:
        agent.close()
