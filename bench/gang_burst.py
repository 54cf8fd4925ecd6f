"""How many pods of gangs a real control plane binds in a second, if all come at once.

Gangs of pods that each ask for a card, on empty nodes without kubelets (root; Kubernetes 1.37 or
newer). They are made while kube-scheduler and the controller are stopped; the time runs from when
these go on to the last binding. Compared are the same gangs without claims, kube-scheduler alone,
and nodes that are named for it. kube-scheduler's own figures for groups are of pods without claims,
so each rate is given as a share of that row, too. What is not bound in time (`--seconds`) is left
out, and the row says how much was. With `--racks` the nodes are in so many racks,
and each gang has the rack as its topology key. Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bench.gang_cluster import RACK, Gangs, cluster_with_groups, label_racks
from bench.gang_progress import GangProgress
from bench.programs import SECONDS, Programs, running
from bench.published import OURS_COUNTED, Publication, add_nodes, for_all
from bench.report import result, say, table
from bench.scenarios import SCENARIOS
from bench.users import Users
from dra_driver.kube.client import connect
from dra_driver.model.effects import Effects
from tests.cluster.versions import chosen_with_dra

_WITHOUT_CLAIMS = "without claims"
COMPARED = {
    _WITHOUT_CLAIMS: "kube_scheduler_counters",
    "kube-scheduler alone": "kube_scheduler_counters",
    "named": "nominated",
}
"""Rows, and the scenario of each."""


@dataclass(frozen=True, slots=True)
class Burst:
    """So many gangs of that size at once, with the topology key unless it is empty, and so many
    seconds in which they are bound."""

    count: int
    size: int
    key: str
    seconds: float


def measure(gangs: Gangs, row: str, burst: Burst) -> dict[str, float]:
    """Nothing is left of the gangs. Raises TimeoutError if no pod is bound."""
    scenario, progress = SCENARIOS[COMPARED[row]], GangProgress()
    names = {
        f"gang-{number}": [f"gang-{number}-{member}" for member in range(burst.size)]
        for number in range(burst.count)
    }

    def start(group: str) -> None:
        has_claim = row != _WITHOUT_CLAIMS
        gangs.start(scenario, group, names[group], topology_key=burst.key, has_claim=has_claim)

    with running(gangs.cluster, scenario) as programs:
        programs.stop()
        try:
            for_all(start, [*names])
            say(f"{row}: {burst.count} gangs have come")
            with progress.following(gangs.api):
                before, begun = programs.cpu(), time.monotonic()
                programs.go_on()
                with suppress(TimeoutError):
                    progress.wait_for_bound(burst.count * burst.size, burst.seconds)
                progress.wait_for_bound(1, 0.0)
                used = _cpu_ms(programs, before, len(progress.bound))
        finally:
            programs.go_on()
    found = figures(begun, progress, names.values()) | used
    Users(gangs.cluster, gangs.api).end_all()
    gangs.end_groups()
    return found


def figures(
    begun: float, progress: GangProgress, gangs: Iterable[Sequence[str]]
) -> dict[str, float]:
    """The row of a table, by its columns. `begun` is on the clock of `progress`; `gangs` are the
    names of their pods."""
    at, gangs = sorted(progress.bound.values()), list(gangs)
    first, last = len(at) // 10, len(at) * 9 // 10
    between = at[last] - at[first]
    whole = [
        max(progress.bound[name] for name in names) - begun
        for names in gangs
        if all(name in progress.bound for name in names)
    ]
    return {
        "bound, %": round(100 * len(at) / sum(map(len, gangs)), 1),
        "pods/s": round(len(at) / (at[-1] - begun), 1),
        "pods/s, 10 to 90 %": round((last - first) / between, 1) if between else 0.0,
        "first gang, s": round(min(whole, default=0.0), 2),
        "last gang, s": round(max(whole, default=0.0), 2),
    }


def shares(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of the rate without claims, by row."""
    base = rows.get(_WITHOUT_CLAIMS, {}).get("pods/s")
    return {} if not base else {name: round(row["pods/s"] / base, 3) for name, row in rows.items()}


def _cpu_ms(programs: Programs, before: Mapping[str, float], pods: int) -> dict[str, float]:
    return {
        f"{name}, ms a pod": round(1_000 * (used - before[name]) / pods, 2)
        for name, used in programs.cpu().items()
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gang_burst",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--gangs", type=int, default=750)
    parser.add_argument("--size", type=int, default=4, help="pods of a gang")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the gangs of a row")
    parser.add_argument("--racks", type=int, default=0, help="0: the gangs have no topology key")
    parser.add_argument("--rows", nargs="*", choices=COMPARED, default=[*COMPARED])
    return parser


def main() -> None:
    chosen = _parser().parse_args()
    burst = Burst(chosen.gangs, chosen.size, RACK if chosen.racks else "", chosen.seconds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rows = dict[str, dict[str, float]]()
    try:
        with cluster_with_groups() as cluster:
            api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
            add_nodes(api, range(chosen.nodes))
            if burst.key:
                label_racks(api, chosen.nodes, chosen.racks)
            Publication(api).publish(OURS_COUNTED, range(chosen.nodes))
            say(f"{chosen.nodes} nodes have devices")
            for row in chosen.rows:
                rows[row] = measure(Gangs(cluster, api), row, burst)
                say(f"{row}: {rows[row]}")
    finally:
        for row, share in shares(rows).items():
            rows[row]["of that without claims"] = share
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        cells = [[name, *(row.get(column, "") for column in columns)] for name, row in rows.items()]
        title = f"Kubernetes {chosen_with_dra()}, {chosen.gangs} gangs of {chosen.size} pods"
        where = f"{chosen.nodes} nodes" + (f" in {chosen.racks} racks" if burst.key else "")
        table(f"{title} on {where}", ["", *columns], cells)
        result({"kubernetes": chosen_with_dra(), "rows": rows})


if __name__ == "__main__":
    main()
