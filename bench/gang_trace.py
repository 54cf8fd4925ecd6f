"""A day of the openb trace with gangs: kube-scheduler alone, and with the nodes that are named.

Simulated time, one process, no server. The same pods come in each row. How gangs come out of the
trace: bench/gang_days.py. How kube-scheduler is played, and the project's own controller beside it:
bench/played_scheduler.py, bench/named_gangs.py.

*alone*: a gang that finds no place holds nothing. Each card that comes free wakes all that waits;
it is tried in the order in which it came, so what is smaller overtakes (1.37.2). kube-scheduler
orders by the last attempt: that is the same, as all are tried each time. *named*: the defaults,
with the racks as `nomination.groupLabels`. *named, gates kept*: `nomination.waiting: 0`.

*in use* is of all slices, over time. A wait begins when the last pod of a gang has come; what still
waits when the day ends has waited until then. Figures are of all seeds together, and what is
left is their sum; seeds break ties of kube-scheduler's scores.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from bench.cards import SLICES
from bench.fleet import CARDS, node_name
from bench.gang_days import DAY, Unit, busiest, units_of
from bench.named_gangs import NamedGangs
from bench.played_scheduler import PlayedScheduler
from bench.report import percentile, result, say, table
from bench.trace import load_pods


class Beside(Protocol):
    """Whoever decides what kube-scheduler tries, and where. Units are known by a number."""

    def wait_until(self, second: float) -> None: ...
    def next_wakeup(self) -> float | None: ...
    def come(self, number: int, unit: Unit) -> None: ...
    def woken(self, waiting: Sequence[int]) -> list[int]: ...
    def opened(self, waiting: Sequence[int]) -> list[int]: ...
    def names(self, number: int) -> Sequence[str]: ...
    def refused(self, number: int) -> None: ...
    def bound(self, number: int, running: Sequence[int], unit: Unit) -> None: ...
    def ended(self, number: int) -> None: ...


class Nobody:
    """kube-scheduler is alone."""

    def __init__(self) -> None:
        self._new = list[int]()

    def wait_until(self, second: float) -> None:
        pass

    def next_wakeup(self) -> float | None:
        return None

    def come(self, number: int, unit: Unit) -> None:
        del unit
        self._new.append(number)

    def woken(self, waiting: Sequence[int]) -> list[int]:
        self._new.clear()
        return [*waiting]

    def opened(self, waiting: Sequence[int]) -> list[int]:
        del waiting
        found, self._new = self._new, []
        return found

    def names(self, number: int) -> Sequence[str]:
        del number
        return ()

    def refused(self, number: int) -> None:
        pass

    def bound(self, number: int, running: Sequence[int], unit: Unit) -> None:
        pass

    def ended(self, number: int) -> None:
        pass


@dataclass(slots=True)
class Outcome:
    """Seconds that gangs and single pods waited; nodes and racks of each gang that was bound; units
    that were `left`; slices times seconds in use, in all and while somebody waited, with the
    seconds of both."""

    gangs: list[float] = field(default_factory=list)
    singles: list[float] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    left: list[Unit] = field(default_factory=list)
    used: float = 0
    seconds: float = 0
    used_in_wait: float = 0
    waiting: float = 0

    def pass_time(self, seconds: float, slices: int, *, waits: bool) -> None:
        self.used += slices * seconds
        self.seconds += seconds
        if waits:
            self.used_in_wait += slices * seconds
            self.waiting += seconds

    def waited(self, unit: Unit, seconds: float) -> None:
        (self.gangs if unit.size > 1 else self.singles).append(seconds)


class Day:
    """One day on the scheduler's nodes. `racks` are by node."""

    def __init__(
        self, scheduler: PlayedScheduler, beside: Beside, racks: Mapping[str, str], outcome: Outcome
    ) -> None:
        self._scheduler, self._beside, self._racks = scheduler, beside, racks
        self._outcome = outcome
        self._now = 0.0
        self._waiting: dict[int, Unit] = {}  # in the order in which they came
        self._ends: list[tuple[float, int, list[int]]] = []

    def play(self, units: Sequence[Unit]) -> None:
        coming = list(reversed([*enumerate(units)]))
        while (at := self._next(coming)) < DAY:
            self._pass_time(at)
            has_freed = self._end_due()
            while coming and coming[-1][1].start <= at:
                number, unit = coming.pop()
                self._waiting[number] = unit
                self._beside.come(number, unit)
            self._serve(has_freed=has_freed)
        self._pass_time(DAY)
        for unit in self._waiting.values():
            self._outcome.waited(unit, DAY - unit.start)
            self._outcome.left.append(unit)

    def _next(self, coming: Sequence[tuple[int, Unit]]) -> float:
        patience = self._beside.next_wakeup()
        return min(
            coming[-1][1].start if coming else DAY,
            self._ends[0][0] if self._ends else DAY,
            DAY if patience is None else self._now + patience,
        )

    def _pass_time(self, at: float) -> None:
        slices, waits = self._scheduler.slices, bool(self._waiting)
        self._outcome.pass_time(at - self._now, slices, waits=waits)
        self._now = at
        self._beside.wait_until(at)

    def _end_due(self) -> bool:
        """Whether cards have come free."""
        has_freed = False
        while self._ends and self._ends[0][0] <= self._now:
            _, number, running = heapq.heappop(self._ends)
            for each in running:
                self._scheduler.stop(each)
            self._beside.ended(number)
            has_freed = True
        return has_freed

    def _serve(self, *, has_freed: bool) -> None:
        for tried in self._to_try(has_freed=has_freed):
            refused = set[Unit]()
            for number in tried:
                unit, names = self._waiting[number], self._beside.names(number)
                asked = Unit(unit.job, unit.size, 0, 0)
                is_hopeless = asked in refused and not any(names)
                members = [unit.job] * unit.size
                running = [] if is_hopeless else self._scheduler.attempt(members, names)
                if not running:
                    refused.add(asked)
                    self._beside.refused(number)
                    continue
                del self._waiting[number]
                self._beside.bound(number, running, unit)
                self._bound(number, unit, running)

    def _to_try(self, *, has_freed: bool) -> Iterator[list[int]]:
        if has_freed:
            yield self._beside.woken([*self._waiting])
        while tried := self._beside.opened([*self._waiting]):
            yield tried

    def _bound(self, number: int, unit: Unit, running: list[int]) -> None:
        heapq.heappush(self._ends, (self._now + unit.seconds, number, running))
        self._outcome.waited(unit, self._now - unit.start)
        if unit.size > 1:
            nodes = {self._scheduler.node_of(each) for each in running}
            racks = {self._racks[name] for name in nodes}
            self._outcome.places.append((len(nodes), len(racks)))


def figures(outcome: Outcome, slices: int) -> dict[str, float]:
    """The row of a table, by its columns; the nodes have so many slices."""
    gangs = [unit for unit in outcome.left if unit.size > 1]
    return {
        "in use, %": 100 * outcome.used / outcome.seconds / slices,
        "in use while somebody waits, %": 100 * outcome.used_in_wait / outcome.waiting / slices,
        "gangs wait s, p50": statistics.median(outcome.gangs),
        "p95": percentile(outcome.gangs, 0.95),
        "longest": max(outcome.gangs),
        "pods wait s, p50": statistics.median(outcome.singles),
        "pods, p95": percentile(outcome.singles, 0.95),
        "pods, longest": max(outcome.singles),
        "gangs in one rack, %": 100 * statistics.mean(racks == 1 for _, racks in outcome.places),
        "nodes of a gang": statistics.mean(nodes for nodes, _ in outcome.places),
        "gangs left": len(gangs),
        "pods left": sum(unit.size for unit in outcome.left),
    }


ROWS: Final[Mapping[str, int | None]] = {"alone": None, "named": 20, "named, gates kept": 0}
"""By name, `nomination.waiting`; None without the controller."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--racks", type=int, default=4)
    parser.add_argument("--times", type=int, default=4, help="members for each pod of the trace")
    parser.add_argument("--longer", type=int, default=8, help="pods run so many times as long")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    pods = load_pods()
    units = units_of(pods, busiest(pods), times=given.times, longer=given.longer)
    racks = {node_name(n): f"r{n * given.racks // given.nodes}" for n in range(given.nodes)}
    rows = {}
    for name, waiting in ROWS.items():
        outcome = Outcome()
        for seed in range(given.seeds):
            scheduler = PlayedScheduler(given.nodes, seed)
            beside = Nobody() if waiting is None else NamedGangs(scheduler, racks, waiting=waiting)
            Day(scheduler, beside, racks, outcome).play(units)
        found = figures(outcome, given.nodes * CARDS * SLICES)
        rows[name] = {column: round(value, 2) for column, value in found.items()}
        say(f"{name}: {rows[name]}")
    gangs = [unit for unit in units if unit.size > 1]
    table(
        f"{len(units) - len(gangs)} pods and {len(gangs)} gangs of {sum(u.size for u in gangs)} "
        f"pods in a day, {given.nodes} nodes in {given.racks} racks",
        ["", *rows],
        [[column, *(row[column] for row in rows.values())] for column in rows["alone"]],
    )
    result(rows)


if __name__ == "__main__":
    main()
