"""The matrix, samples of it, and its table."""

from __future__ import annotations

import itertools

from dra_driver.model.effects import Point
from tests.kill.cells import Cell, Next, Outcome, Result, all_cells, sample, table
from tests.kill.grants import Kind
from tests.kill.moments import Moment, moments

TRACE = [f"{side} {p}" for p in ("journal.append", "journal.sync") for side in ("before", "after")]
CELLS = [
    cell
    for operation, kind in itertools.product(("prepare", "first start"), Kind)
    for cell in all_cells(operation, kind, moments(TRACE * 3), Next)
]


def test_everything_that_can_come_next_follows_every_moment() -> None:
    assert len(CELLS) == len(set(CELLS)) == 2 * len(Kind) * 12 * len(Next)


def test_a_sample_has_each_operation_and_each_point_and_more() -> None:
    fewest, chosen = sample(CELLS, 7, 0), sample(CELLS, 7, 5)
    for cells in (fewest, chosen):
        assert {cell.operation for cell in cells} == {cell.operation for cell in CELLS}
        assert {cell.moment.point for cell in cells} == {cell.moment.point for cell in CELLS}
        assert cells == [cell for cell in CELLS if cell in set(cells)]
    assert set(fewest) < set(chosen)
    assert len(chosen) == len(fewest) + 5


def test_a_sample_comes_again_with_its_seed_alone() -> None:
    assert sample(CELLS, 7, 5) == sample(CELLS, 7, 5) != sample(CELLS, 8, 5)


def test_more_than_there_is_gives_all() -> None:
    assert sample(CELLS, 7, 10_000) == CELLS


def test_a_cell_reads_what_it_writes() -> None:
    assert [Cell.parse(str(cell)) for cell in CELLS] == CELLS


def test_a_table_counts_kills_and_what_was_found() -> None:
    def cell(side: str) -> Cell:
        return Cell("prepare", Kind.DRS, Moment(Point.CDI_WRITE, side, 1), Next.GONE)

    results = [
        (cell("before"), Result(Outcome.NOTHING, reached=True)),
        (cell("after"), Result(Outcome.NOTHING, reached=True)),
        (cell("after"), Result(Outcome.KEPT, reached=True)),
        (cell("before"), Result(Outcome.KEPT, reached=False)),
    ]
    header, row, total = (line.split() for line in table(results))
    assert header[:4] == ["operation", "point", "kills", "before"]
    assert row == ["prepare", "cdi.write", "3", "1", "2", "2", "1", "1"]
    assert total == ["all", "1", "places", "3", "1", "2", "2", "1", "1"]
