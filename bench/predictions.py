"""What it costs to know which nodes kube-scheduler will refuse for a pod.

``python -m bench.predictions`` has 15,000 nodes in four zones, 30 pods on each, of 15,000
workloads, some of which keep their pods apart. A hundred workloads of ten replicas each place one
after the other, the next replica when the one before is on its node; meanwhile other pods end and
come. `first` is the first replica of a workload, for which all pods are looked through. Times are
those of the deciding thread, of all that is asked before devices are chosen.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, cast

from bench.constrained import CONSTRAINTS, RDMA, ZONE
from bench.report import percentile, result, table
from controller.allocator.nodes.node_set import NodeNumbers
from controller.cache.assigned_pods import AssignedPods
from controller.cache.nodes import HOSTNAME
from controller.filter.node_filter import NodeFilter
from controller.filter.predictions import Predictions
from dra_driver.selector.allowance import Allowance

Object = dict[str, Any]

_PODS_OF_A_NODE: Final = 30
_WORKLOADS: Final = 100
_REPLICAS: Final = 10
_NAMESPACES: Final = 500
_APART_OF: Final = 20  # one workload in so many keeps its pods apart


class Fleet:
    """`nodes` nodes and their pods."""

    def __init__(self, nodes: int) -> None:
        self._draw = random.Random(1)
        self._nodes = {f"node-{n:05}": _node(f"node-{n:05}", n) for n in range(nodes)}
        self._names = list(self._nodes)
        numbers = NodeNumbers()
        self.assigned = AssignedPods(numbers)
        for name, each in self._nodes.items():
            self.assigned.set_node(name, each)
        self._uids: list[str] = []
        for number in range(nodes * _PODS_OF_A_NODE):
            self._add(number)
        cluster: Any = SimpleNamespace(
            assigned=self.assigned,
            namespaces={},
            nodes=self._nodes,
            nodes_version=1,
            state=lambda: SimpleNamespace(numbers=numbers, classes={}),
        )
        predictions = Predictions(cluster)
        self._numbers = numbers
        self._filter = NodeFilter(cluster, numbers, Allowance(), predictions)

    def measure(self, constraint: str | None) -> Iterator[tuple[int, float]]:
        """Of each replica its number in its workload, and microseconds."""
        for workload in range(_WORKLOADS):
            name = f"{constraint}-{workload}"
            for replica in range(_REPLICAS):
                self._disturb()
                waiting = _pod(name, f"{name}-{replica}", "team-0", constraint)
                started = time.thread_time_ns()
                found = self._filter.feasible_nodes(waiting, (), {})
                yield replica, (time.thread_time_ns() - started) / 1_000
                chosen = self._draw.choice([*self._numbers.names(found.feasible)])
                waiting["spec"]["nodeName"] = chosen
                self.assigned.set_pod(waiting["metadata"]["uid"], waiting)

    def _add(self, number: int) -> None:
        workload = number // _PODS_OF_A_NODE
        kind = "apart" if workload % _APART_OF == 0 else None
        namespace = f"team-{workload % _NAMESPACES}"
        pod = _pod(f"app-{workload}", f"pod-{number}", namespace, kind)
        pod["spec"]["nodeName"] = self._draw.choice(self._names)
        self.assigned.set_pod(pod["metadata"]["uid"], pod)
        self._uids.append(pod["metadata"]["uid"])

    def _disturb(self) -> None:
        """Pods end, and others come."""
        for _ in range(5):
            index = self._draw.randrange(len(self._uids))
            self.assigned.set_pod(self._uids[index], None)
            self._uids[index] = self._uids[-1]
            self._uids.pop()
            self._add(self._draw.randrange(len(self._names) * _PODS_OF_A_NODE))
        self.assigned.take_freed()


def _node(name: str, number: int) -> Object:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "1Ti"}
    if number % 20 == 0:
        allocatable[RDMA] = "8"
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{number % 4}"}},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": allocatable,
        },
    }


def _pod(app: str, name: str, namespace: str, constraint: str | None) -> Object:
    requests = {"cpu": "1", "memory": "2Gi"}
    spec: Object = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if constraint is not None:
        spec = CONSTRAINTS[constraint](spec, app)
        [container] = spec["containers"]
        resources = container["resources"]  # an extended resource is requested by its limit
        limits = cast("Object", resources.get("limits") or {})
        container["resources"] = {"requests": resources["requests"] | limits}
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {"app": app}}
    return {"metadata": metadata, "spec": spec, "status": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=15_000)
    fleet = Fleet(parser.parse_args().nodes)
    rows, figures = [], {}
    for kind in (None, *CONSTRAINTS):
        times = list(fleet.measure(kind))
        every = [spent for _, spent in times]
        first = [spent for replica, spent in times if replica == 0]
        p50, p99, of_first = (
            round(each, 1)
            for each in (percentile(every, 0.5), percentile(every, 0.99), percentile(first, 0.5))
        )
        rows.append([kind or "none", p50, p99, of_first])
        figures[kind or "none"] = {"p50_us": p50, "p99_us": p99, "first_us": of_first}
    table("Which nodes are refused for a pod, in µs", ["", "p50", "p99", "first, p50"], rows)
    result(figures)


if __name__ == "__main__":
    main()
