"""How much of a cluster's slices each policy grants, against what is possible.

*static*: claims drawn from the trace until they ask 1.3 times what the cards have, none of which
ends. *churn*: the trace at its own times, on fewer cards than it needs. A claim that does not fit
when it comes is turned away, one that fits never is.

The figures are sums of slices granted, divided by those of an allocator that may move everything
that runs at each arrival (bench/bound.py); a policy that turns away a large claim which that one
grants can come out above 1. The static case is also held against the offline optimum, which may
turn away what it likes.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from bench import scheduler_packing
from bench.bound import Repacking
from bench.cards import BASELINES, SLICES, Choose, Fleet
from bench.fleet import CARDS
from bench.ours import Ours
from bench.plot import bars
from bench.report import result, table
from bench.trace import Job, in_mode, load
from controller.allocator.packing.policy import Policy
from dra_driver.model.claims.packing import Packing

STATIC_CARDS = 64
CHURN_CARDS = (48, 64)
SEEDS = range(30)
OVERLOAD = 1.3


class Allocator(Protocol):
    def start(self, number: int, job: Job) -> bool: ...
    def stop(self, number: int) -> None: ...


class Baseline:
    def __init__(self, cards: int, choose: Choose, seed: int) -> None:
        self._fleet = Fleet.of(cards, CARDS, random.Random(seed))
        self._choose = choose

    def start(self, number: int, job: Job) -> bool:
        return self._fleet.start(number, job, self._choose)

    def stop(self, number: int) -> None:
        self._fleet.stop(number)


Make = Callable[[int, int], Allocator]  # of a number of cards and a seed


def policies() -> dict[str, Make]:
    def baseline(choose: Choose) -> Make:
        return lambda cards, seed: Baseline(cards, choose, seed)

    spread = Policy(Packing.SPREAD, Packing.SPREAD)
    return {
        "ours": lambda cards, _: Ours(_nodes(cards), Policy()),
        "ours_spread": lambda cards, _: Ours(_nodes(cards), spread),
        **{name: baseline(choose) for name, choose in BASELINES.items()},
    }


def _nodes(cards: int) -> Sequence[int]:
    return [CARDS] * (cards // CARDS)


def static(jobs: Sequence[Job], make: Make) -> float:
    """The share of the cards' slices that is granted, over all seeds. More is asked than there
    is, and enough whole cards among it: the offline optimum is 1."""
    granted = 0
    for seed in SEEDS:
        draw = random.Random(seed)
        allocator, asked, number = make(STATIC_CARDS, seed), 0, 0
        while asked < OVERLOAD * STATIC_CARDS * SLICES:
            job = draw.choice(jobs)
            asked, number = asked + job.slices, number + 1
            if allocator.start(number, job):
                granted += job.slices
    return granted / (len(SEEDS) * STATIC_CARDS * SLICES)


def churn(jobs: Iterable[Job], allocator: Allocator) -> tuple[int, int]:
    """Slices granted, and slices times seconds."""
    ends: list[tuple[int, int]] = []
    granted, seconds = 0, 0
    for number, job in enumerate(sorted(jobs, key=lambda each: each.start)):
        while ends and ends[0][0] <= job.start:
            allocator.stop(heapq.heappop(ends)[1])
        if allocator.start(number, job):
            heapq.heappush(ends, (job.end, number))
            granted += job.slices
            seconds += job.slices * (job.end - job.start)
    return granted, seconds


Row = dict[str, float]  # by policy


def _static(jobs: Sequence[Job]) -> tuple[Row, Row]:
    """Shares of the bound and of the offline optimum."""
    bound = static(jobs, lambda cards, _: Repacking(cards))
    granted = {name: static(jobs, make) for name, make in policies().items()}
    return {name: each / bound for name, each in granted.items()}, granted | {"bound": bound}


def _churn(jobs: Sequence[Job], cards: int) -> tuple[Row, Row]:
    """Shares of the bound, in slices and in slices times seconds."""
    bound = churn(jobs, Repacking(cards))
    granted = {name: churn(jobs, make(cards, 0)) for name, make in policies().items()}
    return (
        {name: each[0] / bound[0] for name, each in granted.items()},
        {name: each[1] / bound[1] for name, each in granted.items()},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, help="write the mixed cases as an SVG file")
    parser.add_argument("--scheduler", action="store_true", help=scheduler_packing.__doc__)
    given = parser.parse_args()
    if given.scheduler:
        scheduler_packing.measure()
        return
    trace = load()
    rows: dict[str, Row] = {}
    for mix, jobs in (
        ("mixed", trace),
        ("all shared", in_mode(trace, "shared")),
        ("all DRS", in_mode(trace, "drs")),
    ):
        rows[f"static, {mix}"], rows[f"static, {mix}, of the optimum"] = _static(jobs)
        for cards in CHURN_CARDS:
            slices, seconds = _churn(jobs, cards)
            rows[f"churn on {cards} cards, {mix}"] = slices
            rows[f"churn on {cards} cards, {mix}, by time"] = seconds
    columns = [*policies(), "bound"]
    table(
        f"Slices granted, as a share of the bound ({STATIC_CARDS} cards in the static case)",
        ["", *columns],
        [[name, *(f"{row.get(each, 1):.4f}" for each in columns)] for name, row in rows.items()],
    )
    figures = {
        "static": rows["static, mixed"],
        "churn": rows[f"churn on {CHURN_CARDS[0]} cards, mixed"],
        "static_of_offline_optimum": rows["static, mixed, of the optimum"],
    }
    if given.plot:
        given.plot.write_text(bars(figures), encoding="utf-8")
    result({name: {k: round(v, 4) for k, v in row.items()} for name, row in figures.items()})


if __name__ == "__main__":
    main()
