"""Named nodes and kube-scheduler's first fit, against the controller that allocates itself.

100 nodes of 8 cards; the pods of the trace ask for all of their cards in one claim. *static*: they
are drawn until they ask 1.3 times what the cards have, and none ends. *churn*: they come in the
trace's order at its own times, and run 160 times as long, so that they need more than there is. A
pod that does not fit when it comes is turned away. One pod in a hundred of the trace has several
cards; in the rows *often several* there are 20 times as many of those.

What kube-scheduler takes on the named node is played by the placer, in one process
(tests/control_plane/test_first_fit.py shows that it is the same). Left out is that kube-scheduler
may refuse a name, or come to pods in another order than they were named: bench-cluster has that.

A pod's cards are *apart* if an empty node has as many cards that are nearer to each other.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from bench.cards import SLICES
from bench.fleet import CARDS
from bench.ours import Ours
from bench.report import result, table
from bench.trace import Job, load_pods
from controller.allocator.packing.policy import Policy, SchedulerPolicy

NODES: Final = 100
SEEDS: Final = range(5)
_OVERLOAD: Final = 1.3
_LONGER: Final = 160
_MORE: Final = 20


@dataclass(slots=True)
class Outcome:
    """Slices granted, pods of several cards that were granted, and those that have them `apart`."""

    slices: int = 0
    several: int = 0
    apart: int = 0

    def start(self, allocator: Ours, number: int, pod: Job) -> bool:
        """Whether the pod was placed; if so, it is counted."""
        if not allocator.start(number, pod):
            return False
        self.slices += pod.slices * pod.cards
        if pod.cards > 1:
            self.several += 1
            self.apart += allocator.is_apart(number)
        return True


Make = Callable[[], Ours]
ALLOCATORS: Final[Mapping[str, Make]] = MappingProxyType(
    {
        "controller": lambda: Ours([CARDS] * NODES, Policy()),
        "scheduler": lambda: Ours([CARDS] * NODES, SchedulerPolicy()),
    }
)


def static(pods: Sequence[Job], make: Make) -> Outcome:
    """Over all seeds."""
    outcome = Outcome()
    for seed in SEEDS:
        draw, allocator = random.Random(seed), make()
        for number, pod in enumerate(_until_asked(pods, draw)):
            outcome.start(allocator, number, pod)
    return outcome


def _until_asked(pods: Sequence[Job], draw: random.Random) -> Iterator[Job]:
    asked = 0
    while asked < _OVERLOAD * NODES * CARDS * SLICES:
        pod = draw.choice(pods)
        asked += pod.slices * pod.cards
        yield pod


def churn(pods: Iterable[Job], make: Make) -> Outcome:
    """The trace once."""
    allocator, outcome = make(), Outcome()
    ends: list[tuple[int, int]] = []
    for number, pod in enumerate(sorted(pods, key=lambda pod: pod.start)):
        while ends and ends[0][0] <= pod.start:
            allocator.stop(heapq.heappop(ends)[1])
        if outcome.start(allocator, number, pod):
            heapq.heappush(ends, (pod.start + _LONGER * (pod.end - pod.start), number))
    return outcome


def _often_several(pods: Sequence[Job]) -> list[Job]:
    """Those of several cards come again at times of others."""
    draw = random.Random(0)
    again = [pod for pod in pods if pod.cards > 1] * (_MORE - 1)
    moved = zip(again, draw.choices(pods, k=len(again)), strict=True)
    return [
        *pods,
        *(replace(pod, start=at.start, end=at.start + pod.end - pod.start) for pod, at in moved),
    ]


def measure() -> None:
    """Print the table, and the figures as JSON."""
    pods = [pod for pod in load_pods() if pod.cards <= CARDS]
    rows = {
        f"{case}{title}": {name: play(mix, make) for name, make in ALLOCATORS.items()}
        for title, mix in (("", pods), (", often several", _often_several(pods)))
        for case, play in (("static", static), ("churn", churn))
    }
    table(
        f"Slices granted on {NODES} nodes, and pods of several cards that have them apart",
        ["", *ALLOCATORS, "ratio", *(f"{name}, apart" for name in ALLOCATORS)],
        [
            [
                case,
                *(outcome.slices for outcome in row.values()),
                f"{_ratio(row):.4f}",
                *(f"{outcome.apart} of {outcome.several}" for outcome in row.values()),
            ]
            for case, row in rows.items()
        ],
    )
    result({case: round(_ratio(row), 4) for case, row in rows.items()})


def _ratio(row: Mapping[str, Outcome]) -> float:
    return row["scheduler"].slices / row["controller"].slices
