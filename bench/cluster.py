"""Pods bound and claims allocated per second through a real API server, ours and kube-scheduler's.

Each scenario has the cluster's devices for itself, in one run on one control plane without kubelets
(root). kube-scheduler may call the API server as often as it likes: its own limit of 50 calls a
second would be what is measured. bench/burst.py says what the time is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from itertools import chain, pairwise

from bench.burst import Bursts, Rates, Scenario
from bench.fleet import Object
from bench.published import COUNTED, OURS, OURS_COUNTED, TWINS, add_nodes, published
from bench.report import percentile, result, table
from dra_driver.kube.client import Client, connect
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra

SCENARIOS = {
    "kube_scheduler": Scenario(TWINS, ours=False),
    "kube_scheduler_counters": Scenario(OURS_COUNTED, ours=False),
    "nominated": Scenario(OURS_COUNTED, ours=True, flags=("--allocator=scheduler",), gated=True),
    "ours": Scenario(OURS, ours=True, gated=True),
    "ours_without_gate": Scenario(OURS, ours=True),
    "ours_alone": Scenario(OURS, ours=True, scheduled=False),
}
CURVE = {"counters": Scenario(COUNTED, ours=False), "no_counters": Scenario(TWINS, ours=False)}
_FLAGS = {
    "kube-scheduler": ("--kube-api-qps=5000", "--kube-api-burst=5000"),
    "kube-apiserver": ("--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000"),
}
_BEGUN = time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=400)
    parser.add_argument("--writes", type=int, default=32, help="our writes in flight")
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument(
        "--curve", type=int, nargs="*", default=[25, 50, 100], help="nodes, ascending"
    )
    parser.add_argument("--curve-pods", type=int, default=10)
    parser.add_argument("--single", type=int, default=0, help="pods, each alone, until bound")
    chosen = parser.parse_args()
    settings = Settings(
        f"bench-{os.getpid()}",
        kubernetes=chosen_with_dra(),
        keep_nodes_ready=True,
        extra_flags=_FLAGS,
    )
    cluster = Cluster.up(settings, owner=own_process(), report=_say)
    try:
        api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1")
        bursts = Bursts(cluster, api, f"--writes-in-flight={chosen.writes}")
        curve: dict[str, Object] = {}
        sizes = [size for size in chosen.curve if size <= chosen.nodes]
        for have, size in pairwise([0, *sizes, chosen.nodes]):
            add_nodes(api, range(have, size))
            if size in sizes and str(size) not in curve:
                curve[str(size)] = _ms_per_pod(bursts, api, size, chosen.curve_pods)
        rates: dict[str, Rates] = {}
        single: dict[str, Object] = {}
        for name in chosen.scenarios:
            scenario = SCENARIOS[name]
            with published(api, scenario.devices, range(chosen.nodes)):
                _say(f"{name}: {chosen.pods} pods on {chosen.nodes} nodes")
                rates[name] = bursts.run(scenario, chosen.pods)
                _say(f"{name}: {rates[name].figures()}")
                if chosen.single and scenario.scheduled:
                    single[name] = _ms_alone(bursts, scenario, chosen.single)
                    _say(f"{name}: {single[name]}")
    finally:
        cluster.down()
    _print_tables(chosen, rates, curve, single)


def _ms_alone(bursts: Bursts, scenario: Scenario, count: int) -> Object:
    """From when the programs go on until the one pod is bound."""
    found = [1000 / bursts.run(scenario, 1).pods for _ in range(count)]
    return {"p50": round(percentile(found, 0.5), 1), "p90": round(percentile(found, 0.9), 1)}


def _ms_per_pod(bursts: Bursts, api: Client, size: int, pods: int) -> Object:
    found = {}
    for name, scenario in CURVE.items():
        with published(api, scenario.devices, range(size)):
            rate = bursts.run(scenario, pods).pods
        found[name] = round(1000 / rate, 1)
        _say(f"{name}, {size} nodes: {found[name]} ms a pod")
    return found


def _print_tables(
    chosen: argparse.Namespace,
    rates: dict[str, Rates],
    curve: dict[str, Object],
    single: dict[str, Object],
) -> None:
    programs = sorted(set(chain.from_iterable(each.cpu for each in rates.values())))
    table(
        f"{chosen.pods} pods on {chosen.nodes} nodes; processor seconds",
        ("allocated by", "pods bound/s", "claims allocated/s", "names followed", *programs),
        [
            (
                name,
                each.pods,
                each.claims,
                "" if each.followed is None else f"{each.followed:.1%}",
                *(each.cpu.get(one, "") for one in programs),
            )
            for name, each in rates.items()
        ],
    )
    table(
        "kube-scheduler's own allocation, ms a pod",
        ("nodes", *CURVE),
        [(size, *each.values()) for size, each in curve.items()],
    )
    if single:
        rows = [(name, each["p50"], each["p90"]) for name, each in single.items()]
        table("A pod alone until it is bound, ms", ("allocated by", "p50", "p90"), rows)
    sizes = {"nodes": chosen.nodes, "pods": chosen.pods, "writes": chosen.writes}
    result(
        sizes
        | {name: each.figures() for name, each in rates.items()}
        | {"ms_per_pod": curve, "alone": single}
    )


def _say(line: str) -> None:
    print(f"{time.monotonic() - _BEGUN:6.1f} s  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
