"""The record of what was played of the matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.model.effects import Point
from tests.kill.cells import Cell, Next, Outcome, Result
from tests.kill.grants import Kind
from tests.kill.moments import Moment
from tests.kill.played import Played, part_of

CELLS = [
    Cell("prepare", Kind.DRS, Moment(Point.CDI_WRITE, "after", nth), Next.GONE)
    for nth in range(1, 12)
]
KEPT = Result(Outcome.KEPT, reached=True)
MISSED = Result(Outcome.NOTHING, reached=False)


def found_again() -> list[Cell]:
    raise AssertionError("the matrix is on record")


@pytest.fixture
def played(tmp_path: Path) -> Played:
    played = Played(tmp_path / "kills" / "one.jsonl")
    assert played.cells(lambda: CELLS) == CELLS
    return played


def test_the_matrix_is_found_once(played: Played) -> None:
    assert played.cells(found_again) == CELLS


def test_what_was_played_is_not_left(played: Played) -> None:
    played.add(CELLS[3], KEPT)
    played.add(CELLS[1], MISSED)
    assert played.left(CELLS) == [each for each in CELLS if each not in {CELLS[1], CELLS[3]}]
    assert list(played.results().items()) == [(CELLS[1], MISSED), (CELLS[3], KEPT)]


@pytest.mark.parametrize("parts", [1, 2, 8, 20])
def test_parts_cover_everything_once(parts: int) -> None:
    names = [f"{part}/{parts}" for part in range(1, parts + 1)]
    cut = [cell for name in names for cell in of_part(name)]
    assert sorted(cut) == CELLS


def of_part(name: str) -> list[Cell]:
    found = part_of(name)
    assert found is not None
    return found.of(CELLS)


@pytest.mark.parametrize("text", ["", "3", "0/8", "3/0", "prepare / drs"])
def test_what_is_no_part(text: str) -> None:
    assert part_of(text) is None


def test_all_is_a_part() -> None:
    assert of_part("all") == CELLS


def test_a_part_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no part 9/8"):
        part_of("9/8")
