"""The agent is killed in Allocate, in its pod, on a Kubernetes without DRA.

`GCU_KILLS` says what is played: nothing for a sample, which `GCU_SEED` chooses, ``all`` for
every moment of every kind, or one cell as a failure names it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import pytest

from dra_driver.model.effects import Point
from tests.e2e.allocate_kills import Place, Result, table
from tests.e2e.killable import killable
from tests.e2e.without_dra import OldInstallation
from tests.kill.cells import Cell, Next, all_cells
from tests.kill.grants import Kind
from tests.kill.moments import SIDES, Moment
from tests.seed import SEED

pytestmark = [pytest.mark.cluster, pytest.mark.matrix]

T = TypeVar("T")
R = TypeVar("R")

_TRIES = 3
_MISSED_OF = 20  # one of so many kills may come too late, time and again
_SAMPLE = 2  # as many as there are nodes: a kill takes half a minute of one
_EVERYWHERE = (
    Point.JOURNAL_APPEND,
    Point.JOURNAL_SYNC,
    Point.CDI_WRITE,
    Point.CDI_RENAME,
    Point.REPLY_ALLOCATE,
    Point.API_WRITE,
)
_POINTS = {
    Kind.WHOLE: _EVERYWHERE,
    Kind.SHARED: _EVERYWHERE,
    Kind.DRS: (*_EVERYWHERE, Point.EFSMI_CALL),
    Kind.DRS_BESIDE: (*_EVERYWHERE, Point.EFSMI_CALL),
}


class Places:
    """All nodes, each of which does one thing at a time."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._count = len(places)
        self._idle: SimpleQueue[Place] = SimpleQueue()
        for place in places:
            self._idle.put(place)

    def each(self, items: Iterable[T], step: Callable[[Place, T], R]) -> list[tuple[T, R]]:
        """Raises what a step raises, when all are done that nothing is wrong with."""

        def run(item: T) -> tuple[T, R]:
            place = self._idle.get()
            try:
                return item, step(place, item)
            except BaseException as error:
                error.add_note(f"GCU_KILLS={str(item)!r}")
                raise
            finally:
                self._idle.put(place)

        with ThreadPoolExecutor(self._count) as pool:
            try:
                return list(pool.map(run, items))
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)  # a long run is not played to its end
                raise


@pytest.fixture
def places(without_dra: OldInstallation, namespace: str) -> Iterator[Places]:
    without_dra.wait_for_rest()
    with killable(without_dra) as agents:
        made = [Place(without_dra, agent, node, namespace) for node, agent in agents.items()]
        for place in made:
            place.settle_in()
        yield Places(made)


def _chosen(places: Places, what: str) -> list[Cell]:
    if what == "all":
        recorded = places.each(Kind, Place.record)
        return [cell for kind, found in recorded for cell in _cells(kind, found)]
    if what:
        return [Cell.parse(what)]
    return _sample(random.Random(SEED))


def _sample(generator: random.Random) -> list[Cell]:
    """Of some kinds one kill each, at the first pass of a point, which comes in every Allocate."""
    return [
        generator.choice(
            _cells(kind, [Moment(point, side, 1) for point in _POINTS[kind] for side in SIDES])
        )
        for kind in generator.sample(list(Kind), _SAMPLE)
    ]


def _cells(kind: Kind, found: Iterable[Moment]) -> list[Cell]:
    return all_cells("allocate", kind, found, (Next.RETRY,))


def _kill(place: Place, cell: Cell) -> Result:
    """A moment that was seen once may not come again: how often an agent passes a point depends on
    its threads."""
    result = place.kill(cell)
    for _ in range(_TRIES - 1):
        if not result.reached:
            result = place.kill(cell)
    return result


@pytest.mark.timeout(3 * 3600)
def test_a_kill_at_every_point_of_allocate(
    places: Places, cluster_report: Callable[[str], None]
) -> None:
    what = os.environ.get("GCU_KILLS", "")
    cells = _chosen(places, what)
    cluster_report(f"{len(cells)} kills, GCU_SEED={SEED}")
    results = places.each(cells, _kill)
    for line in table(results):
        cluster_report(line)
    missed = [str(cell) for cell, result in results if not result.reached]
    assert len(missed) * _MISSED_OF <= len(cells), missed
    if what == "all":
        killed = {(cell.kind, cell.moment.point) for cell, result in results if result.reached}
        assert killed == {(kind, point) for kind, points in _POINTS.items() for point in points}
