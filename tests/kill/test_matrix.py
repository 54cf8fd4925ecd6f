"""A real agent, killed before and after each of its effects; see docs/dev/crash-safety.md.

`GCU_KILLS` says what is played: nothing for each point once and a sample of the rest, ``all`` for
the whole matrix, or one cell as a failure names it. `GCU_SEED` chooses the sample.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable

import pytest

from dra_driver.model.effects import Point
from tests.kill.catalog import BY_NAME, EVERYTHING
from tests.kill.cells import Cell, sample, table
from tests.kill.conftest import NewNode
from tests.kill.grants import Kind
from tests.kill.matrix import Matrix
from tests.kill.operations import Operation

pytestmark = pytest.mark.control_plane

_WORKERS = 2  # as many as small machines have cores
_MORE = 50
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


def _chosen(matrix: Matrix, what: str, seed: int) -> list[Cell]:
    if what not in {"", "all"}:
        return [Cell.parse(what)]
    cells = matrix.cells(_all_kinds if what else _some_kinds)
    return cells if what else sample(cells, seed, _MORE)


@pytest.mark.timeout(8 * 3600)
def test_a_kill_at_every_point(new_node: NewNode, tell: Callable[[str], None]) -> None:
    what = os.environ.get("GCU_KILLS", "")
    seed = int(os.environ.get("GCU_SEED") or random.randrange(1 << 16))
    matrix = Matrix(_WORKERS, new_node)
    cells = _chosen(matrix, what, seed)
    tell(f"{len(cells)} kills, GCU_SEED={seed}")
    results = matrix.kill(cells)
    for line in table(results):
        tell(line)
    told = [f"GCU_KILLS={name!r}: {why}" for name, why in matrix.failures.items()]
    assert not told, "\n\n".join(told)
    reached = {cell for cell, result in results if result.reached}
    missed = [str(cell) for cell in cells if cell not in reached]
    assert len(missed) * _MISSED_OF <= len(cells), missed
    if len(cells) > 1:
        assert {cell.moment.point for cell in reached} == set(Point)
        assert {cell.operation for cell in reached} == set(BY_NAME) - (
            set() if what else _SOAK_ONLY
        )
