from __future__ import annotations

import errno
import multiprocessing
import os
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from dra_driver.model.errors import InvalidValue, JournalError
from dra_driver.node.locks import Locks, take_lock
from tests.unit.node.world import CARDS


def contend(locks: Locks, inside: list[int], most: list[int], *, claim: bool) -> None:
    for _ in range(200):
        with locks.claim("uid-1") if claim else locks.cards(CARDS[:2]):
            inside.append(1)
            most.append(len(inside))
            inside.pop()


@pytest.mark.parametrize("claim", [True, False], ids=["claim", "cards"])
def test_threads_exclude_each_other(tmp_path: Path, claim: bool) -> None:
    inside: list[int] = []
    most: list[int] = []
    threads = [
        threading.Thread(
            target=contend, args=(Locks(tmp_path / "locks"), inside, most), kwargs={"claim": claim}
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 800
    cards = {"card-0000-0d-00-0.lock", "card-0000-0e-00-0.lock"}
    made = {path.name for path in (tmp_path / "locks").iterdir()}
    assert made == ({"claims.lock"} if claim else cards)


def test_other_cards_and_claims_go_on(tmp_path: Path) -> None:
    locks = Locks(tmp_path)
    done = threading.Event()

    def other() -> None:
        with locks.claim("uid-2"), locks.cards(CARDS[1:2]):
            done.set()

    with locks.claim("uid-1"), locks.cards(CARDS[:1]):
        thread = threading.Thread(target=other)
        thread.start()
        assert done.wait(60)
    thread.join(60)


def hold_in_another_process(directory: Path, connection: Connection) -> None:
    with Locks(directory).claim("uid-1"), Locks(directory).cards(CARDS[:1]):
        connection.send("held")
        connection.recv()


def test_a_process_that_dies_gives_its_locks_back(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=hold_in_another_process, args=(tmp_path, theirs))
    process.start()
    assert ours.recv() == "held"
    taken = threading.Event()

    def take() -> None:
        with Locks(tmp_path).claim("uid-1"), Locks(tmp_path).cards(CARDS[:1]):
            taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert not taken.wait(0.05)
    process.kill()
    assert taken.wait(60)
    thread.join(60)
    process.join(60)


def test_a_hostile_uid_makes_no_file(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "locks")
    with pytest.raises(InvalidValue), locks.claim("../../escaped"):
        pytest.fail("no lock should be given")
    assert not (tmp_path / "locks").exists()


def test_a_directory_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="cannot be used"), Locks(tmp_path / "file").claim("u"):
        pytest.fail("no lock should be given")


def test_a_lock_that_is_taken_with_an_error_is_given_back(tmp_path: Path) -> None:
    """Otherwise nobody gets it until the agent restarts, although the disk works again."""

    def take_and_fail(fd: int, byte: int | None) -> None:
        take_lock(fd, byte)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    failing = Locks(tmp_path, take=take_and_fail)
    with pytest.raises(JournalError, match="Input/output"), failing.cards(CARDS[:1]):
        pytest.fail("no lock should be given")
    impatient = Locks(tmp_path, take=lambda fd, byte: take_lock(fd, byte, wait=False))
    with impatient.cards(CARDS[:1]):
        pass
