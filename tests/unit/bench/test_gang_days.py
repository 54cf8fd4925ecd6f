"""Gangs that are made of the trace's single pods, and the played day."""

from __future__ import annotations

import pytest

from bench.gang_days import DAY, Unit, busiest, units_of
from bench.gang_trace import Day, Nobody, Outcome
from bench.named_gangs import NamedGangs
from bench.played_scheduler import PlayedScheduler
from bench.trace import Job


def pod(start: int, *, seconds: int = 10, cards: int = 1, cpu: int = 1000) -> Job:
    """A pod of the second day."""
    begin = DAY + start
    return Job("whole", 6, cpu, 1024, begin, begin + seconds, cards)


@pytest.mark.parametrize(
    ("pods", "units"),
    [
        pytest.param([pod(0), pod(61)], [(0, 1), (61, 1)], id="too long after another"),
        pytest.param([pod(0), pod(60), pod(120)], [(120, 6)], id="each within a minute"),
        pytest.param([pod(0), pod(1, cpu=2)], [(0, 1), (1, 1)], id="they ask for other things"),
        pytest.param([pod(5), pod(9), pod(7, cpu=2)], [(7, 1), (9, 4)], id="when the last comes"),
        pytest.param([pod(-1), pod(DAY)], [(0, 1)], id="those of other days"),
        pytest.param([pod(-99)], [], id="it has ended"),
        pytest.param([pod(-2), pod(-1, cards=8)], [(0, 1), (0, 1)], id="that run are no gang"),
        pytest.param([pod(0, cards=9)], [], id="no node has as many cards"),
    ],
)
def test_pods_become_gangs(pods: list[Job], units: list[tuple[int, int]]) -> None:
    found = units_of(pods, 1, times=2, longer=1)
    assert [(unit.start, unit.size) for unit in found] == units


def test_a_gang_runs_for_the_mean_of_its_pods() -> None:
    [gang] = units_of([pod(0, seconds=10), pod(1, seconds=30)], 1, times=2, longer=4)
    assert gang.seconds == 80


def test_what_runs_already_comes_largest_first_and_runs_as_long_as_in_the_trace() -> None:
    found = units_of([pod(-2, seconds=9), pod(-1, cards=8)], 1, times=2, longer=4)
    assert [(unit.job.cards, unit.seconds) for unit in found] == [(8, 9), (1, 7)]


def test_the_day_in_which_most_pods_come() -> None:
    assert busiest([pod(0), pod(DAY), pod(DAY + 5)]) == 2


JOB = Job("whole", 6, 0, 0, 0, 0)


@pytest.mark.parametrize("waiting", [None, 0, 20])
def test_a_gang_is_bound_whole_or_not_at_all(waiting: int | None) -> None:
    """Two gangs of six on eight cards: the second one has its cards when the first one ends."""
    outcome, racks = Outcome(), {"node-00000": "r"}
    scheduler = PlayedScheduler(1, seed=0)
    beside = Nobody() if waiting is None else NamedGangs(scheduler, racks, waiting=waiting)
    units = [Unit(JOB, 6, 0, 100), Unit(JOB, 6, 10, 100), Unit(JOB, 1, 20, 10)]
    Day(scheduler, beside, racks, outcome).play(units)
    assert outcome.gangs == [0, 90]
    assert outcome.singles == [0]
    assert outcome.places == [(1, 1)] * 2
    assert outcome.used == 6 * (100 * 12 + 10)
    assert (outcome.waiting, outcome.used_in_wait) == (90, 6 * (90 * 6 + 10))


def test_kube_scheduler_alone_takes_the_node_with_least_requested_and_first_devices() -> None:
    scheduler = PlayedScheduler(2, seed=0)
    job = Job("whole", 6, 1000, 1024, 0, 0)
    running = scheduler.attempt([job] * 2)
    assert {scheduler.node_of(each) for each in running} == {"node-00000", "node-00001"}


def test_a_named_node_is_taken_where_it_has_room() -> None:
    scheduler = PlayedScheduler(2, seed=0)
    full = Job("whole", 6, 1000, 1024, 0, 0, cards=8)
    assert scheduler.attempt([full], ["node-00001"])
    [second] = scheduler.attempt([full], ["node-00001"])
    assert scheduler.node_of(second) == "node-00000"
    assert not scheduler.attempt([full])
    assert scheduler.slices == 96
