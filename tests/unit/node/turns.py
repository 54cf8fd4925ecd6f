"""Calls at the same time, of which one runs at a time: who goes on, and when, the seed decides.

Threads take turns at the moments between which another could come: before and after calls of
``efsmi`` and changes of CDI files, and wherever a lock of a claim or card is wanted. The rest they
do with the journal's mutex held, or it concerns nobody else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from dra_driver.model.effects import Point
from dra_driver.node.locks import take_lock
from tests.unit.node.effects import Crash, Kill

_SWITCHING: Final = frozenset(
    {Point.EFSMI_CALL, Point.CDI_WRITE, Point.CDI_RENAME, Point.CDI_REMOVE}
)
_PATIENCE: Final = 200  # times in a row that nobody gets the lock that he wants
_SECONDS: Final = 60.0

Call = Callable[[], object]


class Turns:
    """Threads that are not of `play` never wait for a turn."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._own = threading.local()
        self._gates: list[threading.Semaphore] = []
        self._alive: set[int] = set()
        self._stuck = 0
        self._crash: Crash | None = None

    def play(self, calls: Sequence[Call]) -> list[object]:
        """What each call gives. Raises Crash when one of them was killed, and so all of them;
        whatever else a call raises."""
        self._gates = [threading.Semaphore(0) for _ in calls]
        self._alive = set(range(len(calls)))
        self._stuck, self._crash = 0, None
        results: list[object] = [None] * len(calls)
        failures: list[BaseException] = []

        def run(number: int, call: Call) -> None:
            self._own.number = number
            try:
                self._await(number)
                results[number] = call()
            except Crash as crash:
                self._crash = crash
            except BaseException as error:  # noqa: BLE001 - raised again below, in the test's thread
                failures.append(error)
            finally:
                self._alive.discard(number)
                self._hand_over(self._alive)

        threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
        for thread in threads:
            thread.start()
        self._hand_over(self._alive)
        for thread in threads:
            thread.join(_SECONDS)
            assert not thread.is_alive(), "a thread waits for something else than its turn"
        for failure in [*failures, *filter(None, [self._crash])]:
            raise failure
        return results

    def take_lock(self, fd: int, byte: int | None) -> None:
        """Like `dra_driver.node.locks.take_lock`; while somebody else has it, others go on."""
        if not self._takes_part():
            take_lock(fd, byte)
            return
        self.switch()
        while True:
            try:
                take_lock(fd, byte, wait=False)
            except BlockingIOError:
                self._stuck += 1
                assert self._stuck < _PATIENCE, "everybody waits for a lock that another has"
                self._yield_to(self._alive - {self._own.number})
            else:
                self._stuck = 0
                return

    def switch(self) -> None:
        """Another may go on here."""
        if self._takes_part() and self._random.random() < 0.5:
            self._yield_to(self._alive)

    def _takes_part(self) -> bool:
        return getattr(self._own, "number", None) in self._alive

    def _yield_to(self, others: set[int]) -> None:
        self._hand_over(others)
        self._await(self._own.number)

    def _hand_over(self, others: set[int]) -> None:
        if others:
            self._gates[self._random.choice(sorted(others))].release()

    def _await(self, number: int) -> None:
        self._gates[number].acquire()
        if self._crash is not None:
            raise Crash(str(self._crash))


class Moments(Kill):
    """Kills as `Kill` does, and lets another thread go on where one could come between."""

    def __init__(self, turns: Turns, n: int = 0) -> None:
        super().__init__(n)
        self._turns = turns

    def before(self, point: Point) -> None:
        if point in _SWITCHING:
            self._turns.switch()
        super().before(point)

    def after(self, point: Point) -> None:
        super().after(point)
        if point in _SWITCHING:
            self._turns.switch()
