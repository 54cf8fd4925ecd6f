"""Prepare and unprepare times of each mode, and memory with 48 held claims, on a real cluster.

``python -m bench.claims`` starts a cluster of two nodes with simulated GCUs (root). Times are those
between the agent's own log lines of a call: what efsmi takes is the simulator's, some 35 ms a call.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from bench.report import result, table
from dra_driver.model.mode import Mode
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.image.build import driver_archive
from tests.cluster.image.inputs import Inputs
from tests.cluster.node import Node
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim_in, pod_with

_TIMES = 12
_HELD = 48  # eight cards in six slices each
_AMOUNTS = {Mode.WHOLE: None, Mode.SHARED: 2, Mode.DRS: 3}
_LINE = re.compile(r"(\S+)Z \w+ kubelet_api\.calls \[(\w+)-[\d-]+\] claims? \S+/(\S+?)(:| \()")
_SYSTEM = f"--namespace={DRIVER_NAMESPACE}"
_SCOPE = "--namespace=measured"


def main() -> None:
    def report(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    archive = driver_archive(Inputs(), report)
    cluster = Cluster.up(Settings("measured", nodes=2), owner=own_process(), report=report)
    try:
        cluster.load_image(archive)
        installation = Installation(cluster)
        installation.install(report=report)
        cluster.kubectl("create", "namespace", "measured")
        memory = [(name, 0, rss) for name, rss in sorted(_memory(cluster))]
        times = _times(installation)
        _hold(installation)
        memory += [(name, _HELD, rss) for name, rss in sorted(_memory(cluster))]
    finally:
        cluster.down()
    rows = [
        (f"{call}, {mode}", *(1000 * of(each) for of in (statistics.median, min, max)))
        for (mode, call), each in times.items()
    ]
    table("Calls of the kubelet, in ms", ("call", "median", "least", "most"), rows)
    table("Resident memory, in MiB", ("process", "claims", "RSS"), memory)
    result({"ms": {name: median for name, median, *_ in rows}, "rss_mib": memory})


def _times(installation: Installation) -> dict[tuple[str, str], list[float]]:
    """By mode and call, the seconds of each."""
    for number in range(_TIMES):
        for mode in Mode:
            _run(installation, f"{mode}-{number}", mode)
            installation.cluster.kubectl("delete", "pod", f"{mode}-{number}", _SCOPE)
    [agent] = installation.agent_pods(_node(installation).name)
    begun: dict[tuple[str, str], datetime] = {}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in installation.cluster.kubectl("logs", _SYSTEM, agent).splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        at, call, claim = datetime.fromisoformat(match[1]), match[2], match[3]
        if match[4] == " (":
            begun[call, claim] = at
        else:
            found[claim.partition("-")[0], call].append((at - begun[call, claim]).total_seconds())
    return dict(sorted(found.items()))


def _run(installation: Installation, name: str, mode: Mode) -> None:
    selector = {"kubernetes.io/hostname": _node(installation).name}
    installation.cluster.apply(
        claim_in(mode, name, "measured", _AMOUNTS[mode]),
        pod_with(name, "measured", nodeSelector=selector),
    )
    wait_for_pods(installation.cluster, "measured", name)


def _hold(installation: Installation) -> None:
    node = _node(installation)
    selector = {"kubernetes.io/hostname": node.name}
    names = [f"held-{number}" for number in range(_HELD)]
    for name in names:
        installation.cluster.apply(
            claim_in(Mode.SHARED, name, "measured", 1),
            pod_with(name, "measured", nodeSelector=selector),
        )
    wait_for_pods(installation.cluster, "measured", *names, timeout=500.0)
    wait_until(lambda: len(installation.cdi_files(node)) == _HELD, 10.0, "48 prepared claims")


def _node(installation: Installation) -> Node:
    return installation.cluster.nodes[0]


def _memory(cluster: Cluster) -> Iterator[tuple[str, float]]:
    """Program and node of each process of the driver, with its resident memory."""
    for pod in cluster.get("pods", _SYSTEM)["items"]:
        [status] = pod["status"]["containerStatuses"]
        identity = status["containerID"].removeprefix("containerd://")
        node = cluster.node(pod["spec"]["nodeName"])
        [task] = [line for line in node.ctr("tasks", "list").splitlines() if identity in line]
        lines = Path("/proc", task.split()[1], "status").read_text().splitlines()
        [kibibytes] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        yield f"{status['name']} {node.name}", int(kibibytes) / 1024


if __name__ == "__main__":
    main()
