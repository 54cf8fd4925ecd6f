"""A day of the openb trace with gangs in it.

The trace's: when pods come, how long they run, what each asks for, and which pods run when the day
begins. It knows single pods only. Pods that ask for the same and come within a minute of each other
become one gang; so how many gangs there are, when they come and what a member asks for are the
trace's, too.

Ours: such pods belong together at all; a gang has `times` as many members, as most of the trace's
would be pairs; all of them come when the last one came, and run for the mean of their seconds;
what comes within the day runs `longer` times as long, as the trace's cluster had room for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from bench.fleet import CARDS
from bench.trace import Job

DAY: Final = 86_400
_TOGETHER: Final = 60  # seconds from one to the next


@dataclass(frozen=True, slots=True)
class Unit:
    """A pod, or the pods of a gang, of one ask. They come at second `start`, and run `seconds`."""

    job: Job
    size: int
    start: int
    seconds: int


def busiest(pods: Iterable[Job]) -> int:
    """The number of the day in which most pods come."""
    by_day = defaultdict[int, int](int)
    for pod in pods:
        by_day[pod.start // DAY] += 1
    return max(by_day, key=by_day.__getitem__)


def units_of(pods: Sequence[Job], day: int, *, times: int, longer: int) -> list[Unit]:
    """In the order in which they come, in seconds of the day; at 0 those that run already, the
    largest first. Pods that no node has room for are left out."""
    fitting = [pod for pod in pods if pod.cards <= CARDS]
    begin, end = day * DAY, (day + 1) * DAY
    running = [Unit(pod, 1, 0, pod.end - begin) for pod in fitting if pod.start < begin < pod.end]
    by_ask = defaultdict[Job, list[Job]](list)
    for pod in sorted(fitting, key=lambda pod: pod.start):
        if begin <= pod.start < end:
            by_ask[replace(pod, start=0, end=0)].append(pod)
    come = [
        _unit(chain, begin, times=times, longer=longer)
        for alike in by_ask.values()
        for chain in _chains(alike)
    ]
    running.sort(key=lambda unit: -unit.job.cards)
    return [*running, *sorted(come, key=lambda unit: unit.start)]


def _chains(alike: Sequence[Job]) -> Iterator[list[Job]]:
    chain = [alike[0]]
    for before, pod in pairwise(alike):
        if pod.start - before.start > _TOGETHER:
            yield chain
            chain = []
        chain.append(pod)
    yield chain


def _unit(chain: Sequence[Job], begin: int, *, times: int, longer: int) -> Unit:
    size = len(chain) * times if len(chain) > 1 else 1
    seconds = longer * sum(pod.end - pod.start for pod in chain) // len(chain)
    return Unit(chain[-1], size, chain[-1].start - begin, max(1, seconds))
