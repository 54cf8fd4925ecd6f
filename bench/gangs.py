"""Gangs on a real control plane: kube-scheduler alone, and with the nodes that are named for it.

Gangs of 4, 8 and 16 pods come one after the other, and stay. Each pod asks for a card and for cpu.
A part of each node's cards is in use, and in each rack another share of the cpu. The racks are a
label of the nodes. Nodes are objects without kubelets (root; Kubernetes 1.37 or newer, with the
gates of groups on).

Each scenario is measured twice: without a constraint, where the controller's
`nomination.groupLabels` has the racks; and with the racks as the groups' topology key, which keeps
a group in one of them. `same rack` is how often the group is bound in the rack that was named, and
`followed` how many pods are bound to the node that was named. `names` and `gates` are the seconds
until the last name was there and the last gate was gone. With `--rounds` all of it is measured
several times in turn. Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from bench.constrained import FirstNodes, first_nodes
from bench.gang_cluster import RACK, Gangs, cluster_with_groups, label_racks
from bench.gang_progress import GangProgress
from bench.prefill import Prefill
from bench.programs import running
from bench.published import OURS_COUNTED, Publication, add_nodes, for_all
from bench.report import percentile, result, say, table
from bench.scenarios import SCENARIOS, Scenario
from bench.users import NAMESPACE, Users
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import PODS
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.versions import chosen_with_dra
from tests.control_plane.objects import pod_with, with_cpu

_SIZES = (4, 8, 16)
_CPU_OF_NODE = 64  # as of `add_nodes`
_BUSY = "busy"  # a namespace
_COMPARED = ("kube_scheduler_counters", "nominated")  # the devices are the same


@dataclass(frozen=True, slots=True)
class Gang:
    """Bound so many `seconds` after its last pod came. `nodes` has that of each pod, and `named`
    the one that was named for it first, empty if none was. The last name came after
    `named_after` seconds, and the last gate was gone after `lifted_after`."""

    seconds: float
    nodes: Sequence[str]
    named: Sequence[str]
    named_after: float = 0.0
    lifted_after: float = 0.0


@dataclass(slots=True)
class Measured:
    """Gangs, and meanwhile the processor time of each program, in seconds, and what was written to
    the API server."""

    gangs: list[Gang] = field(default_factory=list)
    cpu: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    def add(self, more: Measured) -> None:
        self.gangs += more.gangs
        self.cpu.update(more.cpu)
        self.writes.update(more.writes)

    def writes_of_a_pod(self) -> dict[str, float]:
        """The most frequent first."""
        pods = self._pods()
        return {what: round(number / pods, 2) for what, number in self.writes.most_common()}

    def cpu_ms(self) -> dict[str, float]:
        """Milliseconds a pod, by a column's name."""
        pods = self._pods()
        return {
            f"{name}, ms a pod": round(1_000 * spent / pods, 1) for name, spent in self.cpu.items()
        }

    def _pods(self) -> int:
        return sum(len(gang.nodes) for gang in self.gangs)


@dataclass(frozen=True, slots=True)
class Bench:
    cluster: Cluster
    api: Client
    gangs: int

    def measure(self, scenario: Scenario, *, topology_key: str) -> Measured:
        """Nothing is left of the gangs. Raises TimeoutError."""
        draw, flags = random.Random(1), [f"--nomination-group-labels={RACK}"]
        found, pods, progress = list[Gang](), 0, GangProgress()
        users, gangs = Users(self.cluster, self.api), Gangs(self.cluster, self.api)
        with (
            running(self.cluster, scenario, *flags) as programs,
            first_nodes(self.api, scenario) as first,
            progress.following(self.api),
        ):
            before, written = programs.cpu(), programs.writes()
            for number in range(self.gangs):
                size = draw.choice(_SIZES)
                names = [f"gang-{number}-{member}" for member in range(size)]
                gangs.start(scenario, f"gang-{number}", names, topology_key=topology_key)
                begun, pods = time.monotonic(), pods + size
                progress.wait_for_bound(pods)
                found.append(self._gang(names, begun, progress, first))
            used = {name: spent - before[name] for name, spent in programs.cpu().items()}
            writes = programs.writes() - written
        users.end_all()
        gangs.end_groups()
        return Measured(found, Counter(used), writes)

    def _gang(
        self, names: Sequence[str], begun: float, progress: GangProgress, first: FirstNodes
    ) -> Gang:
        pods = [self.api.get(PODS, name, namespace=NAMESPACE) for name in names]
        return Gang(
            max(progress.bound[name] for name in names) - begun,
            [pod["spec"]["nodeName"] for pod in pods],
            [first.by_pod.get(pod["metadata"]["uid"], "") for pod in pods],
            max((progress.named[name] for name in names if name in progress.named), default=begun)
            - begun,
            max(progress.lifted[name] for name in names) - begun,
        )


def figures(gangs: Sequence[Gang], racks: Mapping[str, str]) -> dict[str, float]:
    """The row of a table, by its columns. `racks` are by node."""
    seconds = [gang.seconds for gang in gangs]
    used = [{racks[node] for node in gang.nodes} for gang in gangs]
    row = {
        "seconds, p50": statistics.median(seconds),
        "seconds, p90": percentile(seconds, 0.9),
        "in one rack, %": _percent([len(each) == 1 for each in used]),
        "nodes of a gang": statistics.mean(len(set(gang.nodes)) for gang in gangs),
    }
    pairs = [pair for gang in gangs for pair in zip(gang.nodes, gang.named, strict=True)]
    if any(named for _, named in pairs):
        named = [{racks.get(name, "") for name in gang.named} for gang in gangs]
        row |= {
            "names, p50": statistics.median(gang.named_after for gang in gangs),
            "gates, p50": statistics.median(gang.lifted_after for gang in gangs),
            "same rack, %": _percent([a == b for a, b in zip(used, named, strict=True)]),
            "followed, %": _percent([node == name for node, name in pairs]),
        }
    return {name: round(value, 3) for name, value in row.items()}


def _percent(which: Sequence[bool]) -> float:
    return 100 * sum(which) / len(which)


def _with_racks(cluster: Cluster, api: Client, nodes: int, racks: int) -> dict[str, str]:
    """By node its rack. kube-scheduler takes any of racks whose cpu is equally in use."""
    add_nodes(api, range(nodes))
    cluster.kubectl("create", "namespace", _BUSY)
    found = label_racks(api, nodes, racks)

    def use_cpu(name: str) -> None:
        share = int(found[name][1:]) / (2 * racks)
        busy = pod_with(name, _BUSY, nodeName=name)
        api.create(PODS, with_cpu(busy, f"{share * _CPU_OF_NODE:.3f}"))

    for_all(use_cpu, [*found])
    return found


def _measure(
    cluster: Cluster, chosen: argparse.Namespace, rows: dict[str, dict[str, float]]
) -> None:
    """Adds to the rows as soon as there is one."""
    api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
    racks = _with_racks(cluster, api, chosen.nodes, chosen.racks)
    bench = Bench(cluster, api, chosen.gangs)
    Publication(api).publish(OURS_COUNTED, range(chosen.nodes))
    Prefill(cluster).fill(OURS_COUNTED, chosen.nodes, chosen.full)
    measured = defaultdict[str, Measured](Measured)
    for key, name in chosen.rounds * [*product(("", RACK), _COMPARED)]:
        row = f"{name}, topology key" if key else name
        measured[row].add(bench.measure(SCENARIOS[name], topology_key=key))
        rows[row] = figures(measured[row].gangs, racks) | measured[row].cpu_ms()
        say(f"{row}: {rows[row]}")
        say(f"writes of a pod: {measured[row].writes_of_a_pod()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gangs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--racks", type=int, default=10)
    parser.add_argument("--gangs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1, help="so often in turn")
    parser.add_argument("--full", type=float, default=0.25, help="share of cards in use, 0 to 1")
    return parser


def main() -> None:
    chosen = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rows = dict[str, dict[str, float]]()
    try:
        with cluster_with_groups() as cluster:
            _measure(cluster, chosen, rows)
    finally:
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        title = f"Kubernetes {chosen_with_dra()}, {chosen.gangs} gangs on {chosen.nodes} nodes"
        cells = [[name, *(row.get(column, "") for column in columns)] for name, row in rows.items()]
        table(f"{title} in {chosen.racks} racks", ["", *columns], cells)
        result({"kubernetes": chosen_with_dra(), "rows": rows})


if __name__ == "__main__":
    main()
