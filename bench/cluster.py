"""Who allocates, on a real control plane: pods a second, their cost, and how long one pod waits.

Nodes are objects without kubelets (root). Each scenario has the cluster's devices for itself, and
all run in one process, one after the other: compare figures of one run only, and look at ratios.
kube-scheduler may call the API server as often as it likes: its own limit of 50 calls a second
would be what is measured.

parts:
  bursts   pods that come at once (bench/burst.py): pods bound a second; processor time of each
           program and writes to the API server for a pod; how many names are followed
  single   pods in turn, one at a time: from the creation to the binding (bench/single.py). The
           scenarios take turns, in --rounds
  waiting  all cards are in use, and pods wait: what one freed card costs (bench/waiting.py)
  hostile  another tenant's costly claims wait: how long a neighbour waits (bench/hostile.py)

scenarios:
  kube_scheduler_counters  kube-scheduler alone, as agents publish where it allocates
  nominated                the controller names the node, kube-scheduler allocates
  nominated_held           the same with nomination.waiting 0; part `waiting` alone
  nominated_lifted         the same with all gates lifted; part `waiting` alone
  ours, ours_without_gate  the controller allocates, for pods with and without the scheduling gate
  kube_scheduler           kube-scheduler alone, devices without counters; not by default
  ours_alone               ours_without_gate, kube-scheduler stopped; bursts alone; not by default
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from itertools import pairwise

from bench.figures import Figures
from bench.parts import Parts
from bench.programs import UNLIMITED
from bench.published import add_nodes
from bench.report import result, say
from bench.scenarios import SCENARIOS, USUAL, Ask
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra
from tests.control_plane.attacks import ATTACKS

PARTS = ("bursts", "single", "waiting", "hostile")


def main() -> None:
    chosen = _parser().parse_args()
    # What was measured is printed, and nothing is left, also where make or timeout ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    settings = Settings(
        f"bench-{os.getpid()}",
        kubernetes=chosen_with_dra(),
        keep_nodes_ready=True,
        extra_flags=UNLIMITED,
    )
    figures, writes = Figures(), dict[str, object]()
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        parts = Parts.on(cluster, chosen, figures, writes)
        for have, size in pairwise([0, *sorted(chosen.nodes)]):
            add_nodes(parts.users.api, range(have, size))
            parts.measure(size)
    finally:
        cluster.down()
        figures.print_table(f"Kubernetes {settings.kubernetes}", chosen.scenarios)
        result({"kubernetes": settings.kubernetes, "rows": figures.as_json(), "writes": writes})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    add("--scenarios", nargs="*", choices=SCENARIOS, default=list(USUAL))
    add("--nodes", type=int, nargs="*", default=[100, 1000], help="sizes of the cluster")
    add("--full", type=float, nargs="*", default=[0.0, 0.9], help="shares of cards in use, 0 to 1")
    add("--asks", nargs="*", type=Ask, choices=list(Ask), default=list(Ask), help="a pod's request")
    add("--pods", type=int, default=400, help="in a burst, at most 3/4 of the free cards")
    add("--single", type=int, default=40, help="pods in turn")
    add("--rounds", type=int, default=4, help="turns of each scenario for pods in turn")
    add("--waiting", type=int, default=500, help="pods without room")
    add("--freed", type=int, default=5, help="cards that are freed for them, one by one")
    add("--attacks", nargs="*", choices=ATTACKS, default=list(ATTACKS))
    add("--writes", type=int, default=32, help="the controller's writes in flight")
    return parser


if __name__ == "__main__":
    main()
