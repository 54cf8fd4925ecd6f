"""What one retry of a waiting pod costs: which nodes it may run on, then the decision.

``python -m bench.retries`` measures pods that demand nothing of nodes, that failed on some, and
that have volumes, each with a claim that can be served and with one that cannot, on 5,000 nodes in
three zones, half of whose slices are held. Pods that ask for more cpu than is left ("crowded") find
room on one node in ten, on one at all, and on none. Between two retries a claim ends and another
one takes its place, and a node's heartbeat comes. Times are those of the deciding thread.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from bench import fleet
from bench.allocator import made
from bench.report import percentile, result, table
from bench.shapes import SHAPES
from controller.allocator.allocate import FitError, allocate
from controller.allocator.claim_request import parse_claim
from controller.cache.assigned_pods import AssignedPods
from controller.filter.node_filter import NodeFilter
from controller.filter.predictions import Predictions
from dra_driver.selector.allowance import Allowance

RETRIES = 150
WARM_UP = 20
ZONES = "abc"
ROOMY = 4_321  # the node with the most cpu left
Object = dict[str, Any]


def node(number: int) -> Object:
    name = fleet.node_name(number)
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        },
    }


def pod(name: str, cpu: str, on: str = "") -> Object:
    asked = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    spec = {"containers": [{"name": "main", "resources": asked}], "nodeName": on}
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def selector(key: str, value: str) -> Object:
    """As the volume of a provisioner, or a local one, says where it is."""
    expressions = [{"key": key, "operator": "In", "values": [value]}]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


KINDS: dict[str, tuple[int, Sequence[Object], str]] = {
    "plain": (0, (), "4"),
    "failed on 3": (3, (), "4"),
    "zonal volume": (0, [selector("topology.kubernetes.io/zone", "a")], "4"),
    "local volume": (0, [selector("kubernetes.io/hostname", fleet.node_name(7))], "4"),
    "both": (3, [selector("topology.kubernetes.io/zone", "a")], "4"),
    "crowded": (0, (), "40"),
    "crowded but one": (0, (), "60"),
    "crowded everywhere": (0, (), "70"),
}
"""How many nodes failed, the volumes, and how many cpus the pod asks for."""


def _held_cpu(number: int) -> str:
    """Of each of the node's eight pods."""
    return "0" if number == ROOMY else "1" if number % 10 == 0 else "5"


class Retries:
    def __init__(self, nodes: int) -> None:
        self._cluster = made("uniform", nodes, nodes)
        self._draw = random.Random(1)
        self._nodes = {fleet.node_name(number): node(number) for number in range(nodes)}
        numbers = self._cluster.state.numbers
        lister = SimpleNamespace(nodes=self._nodes, nodes_version=1)
        assigned = AssignedPods(numbers)
        cluster = SimpleNamespace(
            assigned=assigned, namespaces={}, state=lambda: self._cluster.state, **vars(lister)
        )
        self._filter = NodeFilter(lister, numbers, Allowance(), Predictions(cluster))
        for number, (name, each) in enumerate(self._nodes.items()):
            assigned.set_node(name, each)
            for nth in range(8):
                held = pod(f"{name}-{nth}", _held_cpu(number), name)
                assigned.set_pod(held["metadata"]["name"], held)

    def measure(self, kind: str, shape: str) -> list[float]:
        """Microseconds of each retry."""
        failed, volumes, cpu = KINDS[kind]
        names = sorted(self._nodes)
        times = []
        for _ in range(WARM_UP + RETRIES):
            self._disturb()
            waiting = pod("p", cpu)
            excluded = dict.fromkeys(self._draw.sample(names, failed), "refused lately")
            claim = SHAPES[shape](self._draw)
            started = time.thread_time_ns()
            wanted = parse_claim(claim, self._cluster.state.classes)
            selectors = [(each, "not where the pod's volumes are") for each in volumes]
            found = self._filter.feasible_nodes(waiting, selectors, excluded)
            outcome = allocate(self._cluster.state, [wanted], found.feasible)
            if isinstance(outcome, FitError):
                outcome.explain()
            times.append((time.thread_time_ns() - started) / 1_000)
        return times[WARM_UP:]

    def _disturb(self) -> None:
        """A claim ends, another one comes."""
        self._cluster.release_any()
        found = self._cluster.decide(SHAPES["mixed"](self._draw))
        assert found is not None
        self._cluster.hold(self._cluster.allocated(*found))
        self._cluster.state.fleet.refresh()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    retries = Retries(parser.parse_args().nodes)
    rows, figures = [], {}
    for kind in KINDS:
        for shape in ("shared", "impossible"):
            times = retries.measure(kind, shape)
            p50, p99 = (round(percentile(times, part), 1) for part in (0.5, 0.99))
            rows.append([f"{kind}, {shape}", p50, p99])
            figures[f"{kind}, {shape}"] = {"p50_us": p50, "p99_us": p99}
    table("One retry of a waiting pod, in µs", ["", "p50", "p99"], rows)
    result(figures)


if __name__ == "__main__":
    main()
