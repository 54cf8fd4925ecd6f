"""Plays hostile inputs to a parser, one by one, each reproducible by its seed and number."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from dra_driver.model.errors import GcuError
from tests.fuzz.confined import Escape, confined
from tests.fuzz.hostile import Make

SECONDS = 2.0  # of processor time for one input; nearly all take less than a millisecond
_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class Subject:
    """A parser, and how its inputs come about. `parse` may write below `folder` alone, and raises
    a GcuError for what it does not understand; anything else that it raises is a flaw."""

    name: str
    make: Make
    parse: Callable[[bytes, Path], object]


@dataclass(slots=True)
class Tally:
    """How inputs fared; `slowest` is in seconds of processor time, of input `slowest_number`."""

    taken: int = 0
    refused: int = 0
    slowest: float = 0.0
    slowest_number: int = 0

    @property
    def inputs(self) -> int:
        return self.taken + self.refused


class Flaw(AssertionError):
    """An input that a parser neither took nor refused as it should."""


def play(
    subject: Subject, numbers: range, *, seed: int, folder: Path, most: float = SECONDS
) -> Tally:
    """Inputs of these numbers, in a folder that is the subject's own; each takes `most` seconds
    of processor time. Raises Flaw, which says how to have the same input again."""
    tally = Tally()
    with _quiet(), confined(folder):
        for number in numbers:
            data = input_of(subject, seed, number)
            start = time.process_time()
            try:
                subject.parse(data, folder)
                tally.taken += 1
            except GcuError:
                tally.refused += 1
            # Whatever else is raised is what is looked for, and told with the input.
            except (Exception, Escape) as error:
                raise Flaw(_told(subject, seed, number, data, repr(error))) from error
            spent = time.process_time() - start
            if spent > tally.slowest:
                tally.slowest, tally.slowest_number = spent, number
            if spent > most:
                raise Flaw(_told(subject, seed, number, data, f"it took {spent:.1f} s"))
    return tally


def input_of(subject: Subject, seed: int, number: int) -> bytes:
    """The input of that number, the same in every run."""
    return subject.make(Random(f"{subject.name} {seed} {number}"))


def _told(subject: Subject, seed: int, number: int, data: bytes, what: str) -> str:
    shown = repr(data) if len(data) <= _SHOWN else f"{data[:_SHOWN]!r}… ({len(data)} bytes)"
    return (
        f"{subject.name}: {what}\nfor {shown}\n"
        f"again: make fuzz PARSER={subject.name} SEED={seed} FIRST={number} INPUTS=1"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """What the driver tells in its log of what is done to it here, nobody reads."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
