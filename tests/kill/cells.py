"""The matrix: operations × their moments × kinds × what the kubelet does next."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from tests.kill.grants import Kind
from tests.kill.moments import Moment

_MISSED = "missed"


class Next(StrEnum):
    """What comes after the agent's restart."""

    RETRY = "retry"
    GONE = "pod gone"
    RECREATED = "claim recreated"
    HANDED_ON = "devices handed on"


class Outcome(StrEnum):
    """What the claim had after the restart, before the kubelet's next call."""

    KEPT = "all of it"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a cell. `reached`: the agent came to the cell's moment."""

    outcome: Outcome
    reached: bool


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One kill. `operation` is the name of one."""

    operation: str
    kind: Kind
    moment: Moment
    next: Next

    def __str__(self) -> str:
        return f"{self.operation} / {self.kind} / {self.moment} / {self.next}"

    @classmethod
    def parse(cls, text: str) -> Cell:
        """What `str` gives. Raises ValueError for anything else."""
        operation, kind, moment, following = text.split(" / ")
        return cls(operation, Kind(kind), Moment.parse(moment), Next(following))


def all_cells(
    operation: str, kind: Kind, moments: Iterable[Moment], nexts: Iterable[Next]
) -> list[Cell]:
    """Every moment with everything that can come next."""
    return [Cell(operation, kind, *each) for each in product(moments, nexts)]


def sample(cells: Sequence[Cell], seed: int, more: int) -> list[Cell]:
    """Every operation and every point at least once, and `more` others, chosen by the seed; in
    the order of `cells`."""
    chosen: set[Cell] = set()
    generator = random.Random(seed)
    shuffled = generator.sample(cells, len(cells))
    seen: set[str] = set()
    for cell in shuffled:
        places = {cell.operation, str(cell.moment.point)}
        if places - seen:
            seen |= places
            chosen.add(cell)
    rest = [cell for cell in shuffled if cell not in chosen]
    chosen |= set(rest[:more])
    return [cell for cell in cells if cell in chosen]


def table(results: Iterable[tuple[Cell, Result]]) -> list[str]:
    """The lines of a table: each operation and point, how many kills before and after it, what
    the claim had when the agent was back, and how many never came to their moment."""
    kills: Counter[tuple[str, str, str]] = Counter()
    for cell, result in results:
        reached = (cell.moment.side, str(result.outcome), "kills")
        for column in reached if result.reached else (_MISSED,):
            kills[cell.operation, cell.moment.point, column] += 1
    columns = ("kills", "before", "after", str(Outcome.NOTHING), str(Outcome.KEPT), _MISSED)
    places = list(dict.fromkeys((operation, point) for operation, point, _ in kills))
    lines = [_line("operation", "point", *columns)]
    lines += [
        _line(operation, point, *(str(kills[operation, point, each]) for each in columns))
        for operation, point in places
    ]
    total = [str(sum(kills[*place, each] for place in places)) for each in columns]
    return [*lines, _line("all", f"{len(places)} places", *total)]


def _line(operation: str, point: str, *numbers: str) -> str:
    return f"{operation:<21} {point:<23}" + "".join(f"{number:>11}" for number in numbers)
