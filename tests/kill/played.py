"""What was played of the whole matrix, on record, so that a long run can be made in pieces.

A file holds the matrix's cells, found once, and a line for each that was played: pieces cover all
of it exactly once, whenever they run, and a piece that was broken off goes on where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cache import cache_root
from tests.cluster.image.inputs import digest
from tests.kill.cells import Cell, Outcome, Result

_CHECKOUT = Path(__file__).parents[2]
_PART = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Part:
    """One of `count` parts of the matrix, counted from 1, with something of each operation."""

    number: int
    count: int

    def of(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those of the matrix's cells that are in it."""
        return list(cells[self.number - 1 :: self.count])


def part_of(text: str) -> Part | None:
    """What ``all`` or ``3/8`` names; None for other texts. Raises ValueError for ``9/8``."""
    if text == "all":
        return Part(1, 1)
    if (found := _PART.fullmatch(text)) is None:
        return None
    part = Part(*map(int, found.groups()))
    if part.number > part.count:
        raise ValueError(f"there is no part {text}")
    return part


class Played:
    """The record in the file `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of_these_sources(cls) -> Played:
        """In the cache: what was played of another agent tells nothing of this one."""
        key = digest(_CHECKOUT, ("dra_driver",))
        return cls(cache_root() / "kills" / f"{key}.jsonl")

    def __str__(self) -> str:
        return str(self._path)

    def cells(self, find: Callable[[], list[Cell]]) -> list[Cell]:
        """The whole matrix; found by `find` where it is not on record."""
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = self._path.with_name(f"{self._path.name}.new")
            new.write_text(json.dumps(list(map(str, find()))) + "\n")
            new.replace(self._path)
        with self._path.open() as lines:
            return [Cell.parse(name) for name in json.loads(next(lines))]

    def results(self) -> dict[Cell, Result]:
        """What was played, in the order of the matrix."""
        found: dict[Cell, Result] = {}
        with self._path.open() as lines:
            cells = [Cell.parse(name) for name in json.loads(next(lines))]
            for line in lines:
                each = json.loads(line)
                result = Result(Outcome(each["outcome"]), each["reached"])
                found[Cell.parse(each["cell"])] = result
        return {cell: found[cell] for cell in cells if cell in found}

    def left(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those that were not played."""
        done = self.results()
        return [cell for cell in cells if cell not in done]

    def add(self, cell: Cell, result: Result) -> None:
        """It was played."""
        told = {"cell": str(cell), "outcome": str(result.outcome), "reached": result.reached}
        with self._path.open("a") as file:
            file.write(json.dumps(told) + "\n")
