"""What constraints of pods that only kube-scheduler checks cost, on a real control plane.

Each workload is a ReplicaSet whose pods have a card each, from a claim template. Its pods and
claims are made while kube-scheduler and the controller are stopped. The time runs from when they go
on to the last binding, with the constraint and without it, in one run. `ratio` is the one divided
by the other, and `first right` the share of pods that are bound to the first node that their claim
was allocated on, or that was named for them.

  apart  each replica on a node of its own (podAntiAffinity)
  zones  spread over four zones with maxSkew 1
  rdma   a resource that few nodes have
  ports  a host port
  mixed  all of them at the same time

Other pods are bound beforehand, and others wait for more cards than a node has. Nodes are objects
without kubelets (root). Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from bench import fleet
from bench.constrained import (
    CONSTRAINTS,
    REPLICA_SETS,
    TEMPLATES,
    claim_template,
    first_nodes,
    make_nodes_differ,
    replica_set,
)
from bench.programs import SECONDS, UNLIMITED, Programs, running
from bench.published import Publication, add_nodes, claim_of, for_all
from bench.report import result, say, table
from bench.scenarios import SCENARIOS, Scenario
from bench.users import NAMESPACE, Seen, is_bound
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra, release
from tests.cluster.waiting import wait_until
from tests.control_plane.objects import pod_with

_THERE, _WAITING = "there", "waiting"  # namespaces


@dataclass(frozen=True, slots=True)
class Bound:
    """`seconds` until all pods were bound, and the share of pods whose first node was `right`."""

    seconds: float
    right: float


@dataclass(frozen=True, slots=True)
class Bench:
    cluster: Cluster
    api: Client
    scenario: Scenario
    chosen: argparse.Namespace

    def prepare(self) -> None:
        """Nodes with cards, pods that are there, and pods that wait."""
        chosen, api = self.chosen, self.api
        add_nodes(api, range(chosen.nodes))
        make_nodes_differ(api, NODES, chosen.nodes, chosen.rdma_nodes)
        Publication(api).publish(self.scenario.devices, range(chosen.nodes))
        api.create(TEMPLATES, claim_template(self.scenario))
        for namespace in (_THERE, _WAITING):
            self.cluster.kubectl("create", "namespace", namespace)
        for_all(self._start_there, range(chosen.pods))
        for_all(self._start_waiting, range(chosen.waiting))

    def sizes(self, workload: str) -> Mapping[str, int]:
        """How many replicas there are with each constraint."""
        sizes = {name: int(getattr(self.chosen, name)) for name in CONSTRAINTS}
        return sizes if workload == "mixed" else {workload: sizes[workload]}

    def measure(
        self, programs: Programs, sizes: Mapping[str, int], *, is_constrained: bool
    ) -> Bound:
        """Nothing is left of the pods. Raises TimeoutError."""
        programs.wait_quiet()
        programs.stop()
        count = sum(sizes.values())
        try:
            with (
                first_nodes(self.api, self.scenario) as first,
                closing(Seen(self.api, PODS, is_bound)) as bound,
            ):
                for name, replicas in sizes.items():
                    constraint = name if is_constrained else None
                    self.api.create(
                        REPLICA_SETS, replica_set(self.scenario, name, replicas, constraint)
                    )
                wait_until(lambda: len(self._claims()) == count, SECONDS, "claims", interval=0.2)
                begun = time.monotonic()
                programs.go_on()
                seconds = bound.last(count) - begun
                pods = self.api.list(PODS, namespace=NAMESPACE).items
                return Bound(seconds, first.share_right(pods))
        finally:
            programs.go_on()
            self._end(sizes)

    def _end(self, sizes: Mapping[str, int]) -> None:
        for name in sizes:
            self.cluster.kubectl("delete", "replicaset", name, "--cascade=orphan")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0"
        self.cluster.kubectl("delete", f"--raw={path}")
        wait_until(lambda: not self._claims(), SECONDS, "the claims gone", interval=0.2)

    def _claims(self) -> list[str]:
        claims = self.api.list(RESOURCE_CLAIMS, namespace=NAMESPACE).items
        return [claim["metadata"]["name"] for claim in claims]

    def _start_there(self, number: int) -> None:
        node = fleet.node_name(number % self.chosen.nodes)
        self.api.create(PODS, pod_with(f"there-{number}", _THERE, nodeName=node))

    def _start_waiting(self, number: int) -> None:
        """It asks for more cards than a node has."""
        name = f"waiting-{number}"
        request = fleet.request("whole", cards=fleet.CARDS + 1)
        request["exactly"]["deviceClassName"] = self.scenario.devices.class_of("whole")
        self.api.create(RESOURCE_CLAIMS, claim_of(name, _WAITING, [request]))
        self.api.create(PODS, self.scenario.pod(name, _WAITING, name))


def main() -> None:
    chosen = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    kubernetes = chosen_with_dra()
    name = chosen.scenario or _usual(kubernetes)
    settings = Settings(
        f"bench-{os.getpid()}", kubernetes=kubernetes, keep_nodes_ready=True, extra_flags=UNLIMITED
    )
    rows: dict[str, dict[str, float]] = {}
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1", at_once=16)
        bench = Bench(cluster, api, SCENARIOS[name], chosen)
        bench.prepare()
        with running(cluster, bench.scenario, "--writes-in-flight=32") as programs:
            for workload in chosen.workloads:
                rows[workload] = _compared(bench, programs, workload)
                say(f"{workload}: {rows[workload]}")
    finally:
        cluster.down()
        columns = ["seconds without", "seconds with", "ratio", "first right, %"]
        table(
            f"Kubernetes {kubernetes}, {name}, {chosen.nodes} nodes",
            ["", *columns],
            [[workload, *row.values()] for workload, row in rows.items()],
        )
        result({"kubernetes": kubernetes, "scenario": name, "rows": rows})


def _compared(bench: Bench, programs: Programs, workload: str) -> dict[str, float]:
    sizes = bench.sizes(workload)
    without = bench.measure(programs, sizes, is_constrained=False)
    constrained = bench.measure(programs, sizes, is_constrained=True)
    return {
        "without": round(without.seconds, 2),
        "with": round(constrained.seconds, 2),
        "ratio": round(constrained.seconds / without.seconds, 2),
        "first_right": round(100 * constrained.right, 1),
    }


def _usual(kubernetes: str) -> str:
    """Which program allocates where nobody says it."""
    _, minor = map(int, release(kubernetes).minor.split("."))
    return "nominated" if minor >= 37 else "ours"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.constraints",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    workloads = [*CONSTRAINTS, "mixed"]
    add = parser.add_argument
    add("--workloads", nargs="*", choices=workloads, default=workloads)
    add("--scenario", choices=("ours", "ours_without_gate", "nominated"), help="by the version")
    add("--nodes", type=int, default=200)
    add("--pods", type=int, default=3000, help="that are bound beforehand")
    add("--waiting", type=int, default=1000, help="pods that wait for cards")
    add("--apart", type=int, default=100, help="replicas on nodes of their own")
    add("--zones", type=int, default=100, help="replicas spread over the zones")
    add("--rdma", type=int, default=50, help="pods with the resource")
    add("--rdma-nodes", type=int, default=10, help="nodes with the resource")
    add("--ports", type=int, default=50, help="pods with the host port")
    return parser


if __name__ == "__main__":
    main()
