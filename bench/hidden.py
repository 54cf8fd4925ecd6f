"""What a failing attempt costs kube-scheduler where this driver publishes hidden ResourceSlices.

``make bench-hidden K8S=1.34.4`` (root) creates pods with a claim for a card while kube-scheduler is
stopped and no controller runs. When kube-scheduler continues, it tries each pod once on all nodes
and fails. Its processor time for an attempt is measured with hidden slices of 8 cards a node, and
without any slice. A pod with the scheduling gate costs no attempt.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import closing
from itertools import pairwise
from typing import Final

from bench import fleet
from bench.fleet import Object
from bench.programs import SCHEDULER, cpu_seconds
from bench.published import OURS, add_nodes, claim_of, for_all
from bench.report import result, say, table
from bench.users import NAMESPACE, Seen
from dra_driver.agent.slices.slices import SliceForm, desired_slices
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_without_taints
from tests.control_plane.objects import pod_with

_PODS: Final = 10
_FLAGS: Final = {SCHEDULER: ("--kube-api-qps=5000", "--kube-api-burst=5000")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 400, 1000], help="ascending")
    sizes = parser.parse_args().nodes
    version = chosen_without_taints()
    settings = Settings(
        f"bench-{os.getpid()}", kubernetes=version, keep_nodes_ready=True, extra_flags=_FLAGS
    )
    cluster = Cluster.up(settings, owner=own_process(), report=say)
    try:
        api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1")
        for made in OURS.classes():
            api.create(DEVICE_CLASSES, made)
        figures = {}
        for have, size in pairwise([0, *sizes]):
            add_nodes(api, range(have, size))
            without = _ms_an_attempt(cluster, api, f"without-{size}")
            for_all(lambda each: api.create(RESOURCE_SLICES, each), _hidden(api, size))
            hidden = _ms_an_attempt(cluster, api, f"hidden-{size}")
            for each in api.list(RESOURCE_SLICES).items:
                api.delete(RESOURCE_SLICES, each["metadata"]["name"])
            figures[str(size)] = {"hidden_ms": hidden, "without_ms": without}
            say(f"{size} nodes: {figures[str(size)]}")
    finally:
        cluster.down()
    table(
        f"kube-scheduler {version}, ms of processor time for a failing attempt",
        ["nodes", "hidden slices", "no slices"],
        [[size, each["hidden_ms"], each["without_ms"]] for size, each in figures.items()],
    )
    result({"kubernetes": version, "nodes": figures})


def _hidden(api: Client, size: int) -> list[Object]:
    nodes = {each["metadata"]["name"]: each for each in api.list(NODES).items}
    return [
        each
        for number in range(size)
        for each in desired_slices(
            nodes[fleet.node_name(number)],
            fleet.resource_slice(number)["spec"]["devices"],
            1,
            SliceForm.HIDDEN,
        )
    ]


def _ms_an_attempt(cluster: Cluster, api: Client, name: str) -> float:
    scheduler = cluster.processes.get(SCHEDULER)
    time.sleep(2.0)  # kube-scheduler takes in what was created
    scheduler.send(signal.SIGSTOP)
    for number in range(_PODS):
        claim = claim_of(f"{name}-{number}", NAMESPACE, [fleet.request("whole")])
        api.create(RESOURCE_CLAIMS, claim)
        api.create(PODS, pod_with(claim["metadata"]["name"], NAMESPACE, claim["metadata"]["name"]))
    with closing(Seen(api, PODS, _is_refused)) as refused:
        before = cpu_seconds(scheduler.pid)
        scheduler.send(signal.SIGCONT)
        refused.last(_PODS)
        used = cpu_seconds(scheduler.pid) - before
    cluster.kubectl("delete", f"--raw=/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0")
    for number in range(_PODS):
        api.delete(RESOURCE_CLAIMS, f"{name}-{number}", namespace=NAMESPACE)
    return round(1000 * used / _PODS, 1)


def _is_refused(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


if __name__ == "__main__":
    main()
