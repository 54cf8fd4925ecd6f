"""Gangs on a real control plane: kube-scheduler alone, and with the nodes that are named for it.

Gangs of 4, 8 and 16 pods come one after the other, and stay. Each pod asks for a card and for cpu.
A part of each node's cards is in use, and in each rack another share of the cpu. The racks are a
label of the nodes. Nodes are objects without kubelets (root; Kubernetes 1.37 or newer, with the
gates of groups on).

Each scenario is measured twice: without a constraint, where the controller's
`nomination.groupLabels` has the racks; and with the racks as the groups' topology key, which keeps
a group in one of them. `same rack` is how often the group is bound in the rack that was named, and
`followed` how many pods are bound to the node that was named. Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from bench import fleet
from bench.constrained import FirstNodes, first_nodes
from bench.fleet import Object
from bench.prefill import Prefill
from bench.programs import UNLIMITED, running
from bench.published import Publication, add_nodes, claim_of, for_all
from bench.report import percentile, result, say, table
from bench.scenarios import SCENARIOS, Ask, Scenario
from bench.users import NAMESPACE, Seen, Users, is_bound
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import NODES, POD_GROUPS_V1BETA1, PODS, RESOURCE_CLAIMS
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra
from tests.control_plane.objects import pod_with, with_cpu
from tests.control_plane.pod_groups import GATES, SERVED, pod_group

_RACK = "rack"
_SIZES = (4, 8, 16)
_CPU = "2"
_CPU_OF_NODE = 64  # as of `add_nodes`
_BUSY = "busy"  # a namespace
_COMPARED = ("kube_scheduler_counters", "nominated")


@dataclass(frozen=True, slots=True)
class Gang:
    """Bound so many `seconds` after its last pod came. `nodes` has that of each pod, and `named`
    the one that was named for it first, empty if none was."""

    seconds: float
    nodes: Sequence[str]
    named: Sequence[str]


@dataclass(frozen=True, slots=True)
class Bench:
    cluster: Cluster
    api: Client
    gangs: int

    def measure(self, scenario: Scenario, *, topology_key: str) -> list[Gang]:
        """Nothing is left of the gangs. Raises TimeoutError."""
        draw, flags = random.Random(1), [f"--nomination-group-labels={_RACK}"]
        found, pods = list[Gang](), 0
        users = Users(self.cluster, self.api)
        with (
            running(self.cluster, scenario, *flags),
            first_nodes(self.api, scenario) as first,
            closing(Seen(self.api, PODS, is_bound)) as bound,
        ):
            for number in range(self.gangs):
                size = draw.choice(_SIZES)
                names = [f"gang-{number}-{member}" for member in range(size)]
                self._start(scenario, f"gang-{number}", names, topology_key)
                begun, pods = time.monotonic(), pods + size
                found.append(self._bound(names, bound.last(pods) - begun, first))
        users.end_all()
        self.cluster.kubectl("delete", "podgroups", "--all", f"--namespace={NAMESPACE}")
        return found

    def _start(self, scenario: Scenario, group: str, names: Sequence[str], key: str) -> None:
        constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
        made = pod_group(group, NAMESPACE, least=len(names), **constraints)
        self.api.create(POD_GROUPS_V1BETA1, made)
        request = Ask.WHOLE.request(scenario.devices)
        for_all(
            lambda name: self.api.create(RESOURCE_CLAIMS, claim_of(name, NAMESPACE, [request])),
            names,
        )
        for_all(lambda name: self.api.create(PODS, _member(scenario, group, name)), names)

    def _bound(self, names: Sequence[str], seconds: float, first: FirstNodes) -> Gang:
        pods = [self.api.get(PODS, name, namespace=NAMESPACE) for name in names]
        named = [first.by_pod.get(pod["metadata"]["uid"], "") for pod in pods]
        return Gang(seconds, [pod["spec"]["nodeName"] for pod in pods], named)


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
            "same rack, %": _percent([a == b for a, b in zip(used, named, strict=True)]),
            "followed, %": _percent([node == name for node, name in pairs]),
        }
    return {name: round(value, 3) for name, value in row.items()}


def _member(scenario: Scenario, group: str, name: str) -> Object:
    pod = scenario.pod(name, NAMESPACE, name)
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return with_cpu(pod, _CPU)


def _percent(which: Sequence[bool]) -> float:
    return 100 * sum(which) / len(which)


def _with_racks(cluster: Cluster, api: Client, nodes: int, racks: int) -> dict[str, str]:
    """By node its rack. kube-scheduler takes any of racks whose cpu is equally in use."""
    add_nodes(api, range(nodes))
    cluster.kubectl("create", "namespace", _BUSY)
    found = {fleet.node_name(number): f"r{number * racks // nodes}" for number in range(nodes)}
    for name, rack in found.items():
        api.patch(NODES, name, {"metadata": {"labels": {_RACK: rack}}})
        share = int(rack[1:]) / (2 * racks)
        busy = pod_with(name, _BUSY, nodeName=name)
        api.create(PODS, with_cpu(busy, f"{share * _CPU_OF_NODE:.3f}"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gangs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--racks", type=int, default=10)
    parser.add_argument("--gangs", type=int, default=50)
    parser.add_argument("--full", type=float, default=0.25, help="share of cards in use, 0 to 1")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    settings = Settings(
        f"bench-{os.getpid()}",
        kubernetes=chosen_with_dra(),
        keep_nodes_ready=True,
        feature_gates=GATES,
        extra_flags={
            **UNLIMITED,
            "kube-apiserver": (*UNLIMITED["kube-apiserver"], SERVED),
        },
    )
    rows = dict[str, dict[str, float]]()
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
        racks = _with_racks(cluster, api, chosen.nodes, chosen.racks)
        bench = Bench(cluster, api, chosen.gangs)
        publication, prefill = Publication(api), Prefill(cluster)
        for name in _COMPARED:
            scenario = SCENARIOS[name]
            publication.publish(scenario.devices, range(chosen.nodes))
            prefill.fill(scenario.devices, chosen.nodes, chosen.full)
            for key in ("", _RACK):
                row = f"{name}, topology key" if key else name
                rows[row] = figures(bench.measure(scenario, topology_key=key), racks)
                say(f"{row}: {rows[row]}")
    finally:
        cluster.down()
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        title = f"Kubernetes {settings.kubernetes}, {chosen.gangs} gangs on {chosen.nodes} nodes"
        cells = [[name, *(row.get(column, "") for column in columns)] for name, row in rows.items()]
        table(f"{title} in {chosen.racks} racks", ["", *columns], cells)
        result({"kubernetes": settings.kubernetes, "rows": rows})


if __name__ == "__main__":
    main()
