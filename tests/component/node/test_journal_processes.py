"""The journal between processes, with real kills."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects, Point
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import ClaimStep, record
from tests.unit.node.world import hold

SPAWN = multiprocessing.get_context("spawn")
CAPACITY = 1 << 12
POINTS = [
    Point.JOURNAL_APPEND,
    Point.JOURNAL_SYNC,
    Point.JOURNAL_COMPACT_WRITE,
    Point.JOURNAL_COMPACT_RENAME,
    Point.JOURNAL_RESERVE,
]


class KillMyself(Effects):
    """SIGKILL at the n-th time before or after the effect."""

    def __init__(self, point: Point, *, after: bool, n: int) -> None:
        self._point = point
        self._after = after
        self._left = n

    def before(self, point: Point) -> None:
        self._maybe(point, now=not self._after)

    def after(self, point: Point) -> None:
        self._maybe(point, now=self._after)

    def _maybe(self, point: Point, *, now: bool) -> None:
        if point is self._point and now:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def write(
    directory: Path, first: int, count: int, acknowledge: Connection, kill: Effects | None
) -> None:
    """Prepare claims one after another, forget every second one; tell what is durable."""
    journal = Journal(directory, effects=kill or Effects(), capacity=CAPACITY)
    journal.open()
    for number in range(first, first + count):
        ref = ClaimRef("team", f"claim-{number}", f"uid-{number}")
        journal.write(record(ClaimStep.PREPARE_COMPLETED, ref, (hold(0),)))
        acknowledge.send((number, "prepared"))
        if number % 2:
            journal.write(record(ClaimStep.FORGOTTEN, ref, ()))
            acknowledge.send((number, "forgotten"))
    acknowledge.close()


def start(
    directory: Path, first: int, count: int, kill: Effects | None = None
) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=write, args=(directory, first, count, theirs, kill))
    process.start()
    theirs.close()
    return process, ours


def acknowledged(connection: Connection) -> dict[int, str]:
    last: dict[int, str] = {}
    while True:
        try:
            number, state = connection.recv()
        except EOFError:
            return last
        last[number] = state


def check(directory: Path, *acknowledgements: dict[int, str]) -> None:
    aside: list[Path] = []
    journal = Journal(directory, capacity=CAPACITY, on_damaged=aside.append)
    journal.open()
    held = set(journal.snapshot().claims)
    journal.close()
    assert aside == []
    for told in acknowledgements:
        for number, state in told.items():
            in_doubt = number == max(told) and number % 2
            if state == "prepared" and not in_doubt:
                assert f"uid-{number}" in held
            if state == "forgotten":
                assert f"uid-{number}" not in held


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_nothing_that_was_acknowledged(
    tmp_path: Path, point: Point, after: bool
) -> None:
    process, told = start(tmp_path, 0, 60, KillMyself(point, after=after, n=3))
    last = acknowledged(told)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    check(tmp_path, last)


def test_two_processes_lose_nothing_of_each_other_and_of_a_killed_third(tmp_path: Path) -> None:
    killed, told_killed = start(
        tmp_path, 2000, 200, KillMyself(Point.JOURNAL_APPEND, after=False, n=40)
    )
    one, told_one = start(tmp_path, 0, 100)
    other, told_other = start(tmp_path, 1000, 100)
    acknowledgements = [acknowledged(told) for told in (told_killed, told_one, told_other)]
    for process in (killed, one, other):
        process.join(60)
    assert (one.exitcode, other.exitcode) == (0, 0)
    assert [len(told) for told in acknowledgements[1:]] == [100, 100]
    check(tmp_path, *acknowledgements)
