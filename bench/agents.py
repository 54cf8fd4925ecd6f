"""What agents cost an API server: requests by its own audit log, and watches.

Whole agents run in this process, each with the rights of its pod on a Node of its own, beside a
real control plane: at rest, while claims are prepared and unprepared, started anew all together,
and after the API server was away. At rest they are watched in lapse of time: what comes every five
or ten minutes comes `--lapse` times as often, and is counted for the time that it stands for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.report import result, table
from dra_driver.kube.client import connect
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.control_plane.agent_fleet import CARDS, USER_AGENT, Fleet, fleet
from tests.control_plane.audit import AuditLog, Request
from tests.control_plane.components import away
from tests.control_plane.driver import Driver

BOUNDS: Final = {"rest": 1.0, "claim": 4.0, "start": 12.0, "restart": 14.0, "return": 6.0}
"""Requests of one agent: a minute at rest, for a claim from prepare to unprepare, from its first
start, from another one with two claims held, and after an hour without an API server."""
WATCHES: Final = 1

_NAMESPACE: Final = "fleet"
_ROUNDS: Final = 2  # of claims
_HELD: Final = 2
_FOLLOWS: Final = 3.0  # seconds for events and statuses, which follow on what is waited for
_FLEET: Final = 15_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The requests of one phase, for `units` of what it is counted by."""

    requests: Sequence[Request]
    units: float

    @property
    def each(self) -> float:
        return len(self.requests) / self.units

    def kinds(self) -> Mapping[str, float]:
        """By verb and resource."""
        counted = Counter(each.what for each in self.requests)
        return {what: number / self.units for what, number in counted.most_common()}

    def busiest_second(self) -> float:
        """The largest share of the requests that came within a second."""
        times = [each.at for each in self.requests]
        counts = [bisect_left(times, at + 1.0) - n for n, at in enumerate(times)]
        return max(counts, default=0) / max(len(times), 1)


@dataclass(slots=True)
class Measurement:
    """Phases of one fleet, one after the other."""

    cluster: Cluster
    log: AuditLog
    fleet: Fleet

    def start(self) -> Cost:
        """All agents start together; afterwards they run."""
        return self._phase(self.fleet.start, len(self.fleet.agents))

    def claims(self) -> Cost:
        """Each agent prepares a claim, writes its status and unprepares it, twice."""

        def act() -> None:
            for number in range(_ROUNDS):
                self.fleet.unprepare(self.fleet.prepare(f"brief-{number}", CARDS[0]))

        return self._phase(act, _ROUNDS * len(self.fleet.agents))

    def restart(self) -> Cost:
        """All agents end and start together, with two claims held each."""
        for card in CARDS[:_HELD]:
            self.fleet.prepare(f"held-{card.slug}", card)
        self.fleet.stop()
        return self._phase(self.fleet.start, len(self.fleet.agents))

    def rest(self, *, lapse: float, seconds: float) -> tuple[Cost, int]:
        """So many seconds, which stand for `lapse` times as many; and the most watches of one
        agent. The agents start anew for it."""
        self.fleet.stop()
        with self.fleet.lapsed(lapse):
            self.fleet.start()
            time.sleep(_FOLLOWS)
            cost = self._phase(
                lambda: time.sleep(seconds), len(self.fleet.agents) * lapse * seconds / 60.0, 0.0
            )
            watches = max(self.log.watches(USER_AGENT).values())
            self.fleet.stop()
        self.fleet.start()
        return cost, watches

    def come_back(self, *, away_for: float, seconds: float) -> Cost:
        """The API server is away, and back; what comes within so many seconds then."""
        with away(self.cluster, "kube-apiserver"):
            time.sleep(away_for)

        def act() -> None:
            end = time.monotonic() + seconds
            self.fleet.wait_ready()
            time.sleep(max(0.0, end - time.monotonic()))

        return self._phase(act, len(self.fleet.agents))

    def _phase(self, act: Callable[[], None], units: float, follows: float = _FOLLOWS) -> Cost:
        begun = time.time()
        act()
        time.sleep(follows)
        return Cost(self.log.requests(USER_AGENT, begun, time.time()), units)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--lapse", type=float, default=10.0)
    parser.add_argument("--rest", type=float, default=120.0, help="seconds at rest")
    parser.add_argument("--away", type=float, default=100.0, help="seconds without an API server")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcu-") as folder:
        root = Path(folder)
        log = AuditLog(root)
        settings = Settings("bench-agents", keep_nodes_ready=True, extra_flags=log.flags)
        cluster = Cluster.up(settings, owner=own_process(), report=_report)
        try:
            _measure(cluster, log, root, chosen)
        finally:
            cluster.down()


def _measure(cluster: Cluster, log: AuditLog, root: Path, chosen: argparse.Namespace) -> None:
    Driver.install(cluster)
    cluster.kubectl("create", "namespace", _NAMESPACE)
    api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
    with fleet(cluster, api, root, count=chosen.agents, namespace=_NAMESPACE) as agents:
        measurement = Measurement(cluster, log, agents)
        costs: dict[str, Cost] = {}
        for name in ("start", "claims", "restart"):
            _report(name)
            costs[name] = getattr(measurement, name)()
        _report("rest")
        costs["rest"], watches = measurement.rest(lapse=chosen.lapse, seconds=chosen.rest)
        _report("return")
        costs["return"] = measurement.come_back(away_for=chosen.away, seconds=45.0)
    costs["claim"] = costs.pop("claims")
    _print(costs, watches)


def _print(costs: Mapping[str, Cost], watches: int) -> None:
    rows = [
        (name, costs[name].each, bound, costs[name].busiest_second())
        for name, bound in BOUNDS.items()
    ]
    table("Requests of one agent", ("", "requests", "bound", "in the busiest second"), rows)
    for name, cost in costs.items():
        table(f"{name}: which", ("", "of one agent"), [*cost.kinds().items()])
    rest = costs["rest"].each * _FLEET / 60.0
    table(
        f"{_FLEET:,} agents at rest",
        ("", ""),
        [("requests a second", rest), ("watches", watches * _FLEET)],
    )
    figures = {name: round(cost.each, 2) for name, cost in costs.items()}
    shares = {name: round(cost.busiest_second(), 3) for name, cost in costs.items()}
    result({"requests": figures, "busiest_second": shares, "watches": watches})


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
