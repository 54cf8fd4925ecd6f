"""Moments at which an agent can be killed, and the effects that kill it there.

A moment is counted from its order on, by point and side: threads that do something else meanwhile
do not shift it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dra_driver.model.effects import Effects, Point

SIDES = ("before", "after")


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """`side` is ``before`` or ``after``; `nth` counts from 1."""

    point: Point
    side: str
    nth: int

    @classmethod
    def parse(cls, text: str) -> Moment:
        """What `str` gives. Raises ValueError for anything else."""
        side, point, nth = text.split()
        if side not in SIDES:
            raise ValueError(f"{text!r} does not begin with one of {SIDES}")
        return cls(Point(point), side, int(nth))

    def __str__(self) -> str:
        return f"{self.line} {self.nth}"

    @property
    def line(self) -> str:
        """What a trace says of it; that of a killed process ends with it."""
        return f"{self.side} {self.point}"


def moments(trace: Iterable[str]) -> list[Moment]:
    """Every moment of a trace, whose lines are ``<side> <point>``."""
    seen: Counter[str] = Counter()
    found = []
    for line in trace:
        seen[line] += 1
        found.append(Moment.parse(f"{line} {seen[line]}"))
    return found


def give_order(path: Path, moment: Moment) -> None:
    """Let the process that looks at `path` be killed at that moment, counted from now."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(str(moment))
    new.replace(path)


class FatalEffects(Effects):
    """Writes each moment to the file `trace`, and kills the process at the one that the file
    `order` names, which may come and change at any time."""

    def __init__(self, trace: Path, order: Path, die: Callable[[], None] | None = None) -> None:
        self._trace = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._order_file = order
        self._die = die or _die
        self._inode = 0
        self._order: Moment | None = None
        self._seen: Counter[str] = Counter()
        self._mutex = threading.Lock()

    def before(self, point: Point) -> None:
        self._pass(f"before {point}")

    def after(self, point: Point) -> None:
        self._pass(f"after {point}")

    def _pass(self, line: str) -> None:
        with self._mutex:
            self._take_order()
            self._seen[line] += 1
            os.write(self._trace, f"{line}\n".encode())
            if self._order is not None and str(self._order) == f"{line} {self._seen[line]}":
                self._die()

    def _take_order(self) -> None:
        try:
            inode = self._order_file.stat().st_ino
        except FileNotFoundError:
            return
        if inode != self._inode:
            self._inode = inode
            self._order = Moment.parse(self._order_file.read_text())
            self._seen.clear()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
