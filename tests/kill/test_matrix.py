"""A real agent, killed before and after each of its effects; see docs/dev/crash-tests.md.

`GCU_KILLS` says what is played: nothing for a sample that has every operation and every point,
``all`` for the whole matrix, ``3/8`` for that part of it, or one cell as a failure names it.
`GCU_SEED` chooses the sample, without it the day. What was played of the whole matrix stays on
record and is not played again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

import pytest

from dra_driver.model.effects import Point
from tests.kill.catalog import BY_NAME, EVERYTHING
from tests.kill.cells import Cell, Result, sample, table
from tests.kill.conftest import NewNode
from tests.kill.grants import Kind
from tests.kill.matrix import Matrix
from tests.kill.operations import Operation
from tests.kill.played import Part, Played, part_of
from tests.kill.quick_efsmi import QuickEfsmi
from tests.seed import SEED

pytestmark = pytest.mark.control_plane

_WORKERS = 4  # on two cores: an agent waits for the disk and the API server, and dies
_WORKERS_BESIDE_OTHERS = 3  # of a sample, which runs while clusters of other tests do
_MORE = 60
_EVERY_KIND = {"prepare", "unprepare", "allocate", "release"}
# They go the ways of those of DRA of that name, which the short run plays.
_SOAK_ONLY = {"plugin reboot", "plugin damaged", "plugin reconcile", "plugin stop"}
_MISSED_OF = 50  # one of so many kills may come too late, time and again


def _some_kinds(operation: Operation) -> Iterable[Kind]:
    """All of them where they matter most; elsewhere one, by turns, or none."""
    if operation.name in _SOAK_ONLY:
        return ()
    if operation.name in _EVERY_KIND:
        return (Kind.WHOLE, Kind.SHARED, Kind.DRS)
    return (tuple(Kind)[EVERYTHING.index(operation) % len(Kind)],)


def _all_kinds(operation: Operation) -> Iterable[Kind]:
    return Kind


@pytest.fixture
def matrix(new_node: NewNode, quick_efsmi: QuickEfsmi, tell: Callable[[str], None]) -> Matrix:
    workers = _WORKERS if os.environ.get("GCU_KILLS") else _WORKERS_BESIDE_OTHERS
    return Matrix(workers, lambda plugin: new_node(plugin, quick_efsmi), tell)


@pytest.mark.long
@pytest.mark.timeout(8 * 3600)
def test_a_kill_at_every_point(matrix: Matrix, tell: Callable[[str], None]) -> None:
    what = os.environ.get("GCU_KILLS", "")
    if part := part_of(what):
        _play_part(part, matrix, tell)
    elif what:
        _judge(_play([Cell.parse(what)], matrix, tell), matrix)
    else:
        seed = SEED or datetime.now(UTC).toordinal()
        tell(f"GCU_SEED={seed}")
        cells = sample(matrix.cells(_some_kinds), seed, _MORE)
        results = _play(cells, matrix, tell)
        _judge(results, matrix)
        _judge_cover(results, set(BY_NAME) - _SOAK_ONLY)


def _play_part(part: Part, matrix: Matrix, tell: Callable[[str], None]) -> None:
    played = Played.of_these_sources()
    whole = played.cells(lambda: matrix.cells(_all_kinds))
    tell(f"{len(played.results())} of {len(whole)} were played before, says {played}")
    try:
        for cell, result in matrix.kill(played.left(part.of(whole))):
            played.add(cell, result)
    finally:
        _print(played.results(), tell)
        # Moments that did not come are tried again at the end, and only then counted as missed.
        tell(f"{len(played.left(whole))} of {len(whole)} are left")
    _judge(played.results(), matrix)
    if not played.left(whole):
        _judge_cover(played.results(), set(BY_NAME))


def _play(cells: Sequence[Cell], matrix: Matrix, tell: Callable[[str], None]) -> dict[Cell, Result]:
    tell(f"{len(cells)} kills")
    results = dict(matrix.kill(cells))
    _print(results, tell)
    return results


def _print(results: Mapping[Cell, Result], tell: Callable[[str], None]) -> None:
    for line in table(results.items()):
        tell(line)


def _judge(results: Mapping[Cell, Result], matrix: Matrix) -> None:
    told = [f"GCU_KILLS={name!r}: {why}" for name, why in matrix.failures.items()]
    assert not told, "\n\n".join(told)
    missed = [str(cell) for cell, result in results.items() if not result.reached]
    assert len(missed) * _MISSED_OF <= len(results), missed


def _judge_cover(results: Mapping[Cell, Result], operations: AbstractSet[str]) -> None:
    reached = {cell for cell, result in results.items() if result.reached}
    assert {cell.moment.point for cell in reached} == set(Point)
    assert {cell.operation for cell in reached} == operations
