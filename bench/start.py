"""How long pods take from their creation until they run, on a cluster that does nothing else.

Two nodes with kubelets and simulated cards (root). Pods come one at a time: without a claim, with a
whole card, a slice, and an instance of one slice in turn, so that noise of the machine hits all;
first with the controller as the allocator, then with kube-scheduler and nodes that the controller
names. A claim and its pod are created together. The next pod comes when both are deleted and
nothing of them is left on the nodes.

columns: median and 90th percentile, milliseconds from the creation on
  bound    kube-scheduler has bound the pod
  started  the container's first line, by the clock of containerd
  running  the pod's status says so, which can be before that line, and up to a second after it
  tool     what calls of efsmi took in between, as the agents' metrics say
  beyond   what a pod takes from its binding to its first line more than a pod without a claim, as
           a share of all that such a pod takes until then: medians, in percent
  own      the same without the calls of efsmi, which here are a simulated tool's
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.real_nodes import real_nodes
from bench.report import percentile, result, say, table
from bench.users import Seen, is_bound
from dra_driver.agent.metric_specs import EFSMI_SECONDS
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.effects import Effects
from dra_driver.model.mode import Mode
from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE, temporary_namespace
from tests.cluster.versions import chosen_with_dra
from tests.cluster.workloads import pod
from tests.e2e.installation import Installation
from tests.e2e.manifests import Object, claim_in, pod_with

_COMMAND: Final = "echo started; exec sleep infinity"
_BARE: Final = "no-claim"
_ASKS: Final[Mapping[str, Mode | None]] = {_BARE: None, **{str(mode): mode for mode in Mode}}


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the creation of a pod, or of its claim."""

    bound: float
    started: float
    running: float
    tool: float = 0.0


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of one namespace, one at a time; `count` are measured of each kind."""

    installation: Installation
    api: Client
    namespace: str
    count: int

    def starts(self) -> Mapping[str, Sequence[Start]]:
        """By what the pods ask for. The first of each kind is not counted: caches are empty."""
        found: dict[str, list[Start]] = {ask: [] for ask in _ASKS}
        for number in range(self.count + 1):
            for ask, mode in _ASKS.items():
                found[ask].append(self._start(f"{ask}-{number}", mode))
            last = (f"{ask} {starts[-1].started:.2f} s" for ask, starts in found.items())
            say(f"{number} of {self.count}: {', '.join(last)}")
        return {ask: starts[1:] for ask, starts in found.items()}

    def _start(self, name: str, mode: Mode | None) -> Start:
        tool = self._tool_seconds()
        with ExitStack() as stack:
            seen = [
                stack.enter_context(closing(Seen(self.api, PODS, is_done, self.namespace)))
                for is_done in (is_bound, _is_running)
            ]
            begun, clock = time.monotonic(), time.time()
            if mode is None:
                bare = pod(name, self.namespace, _COMMAND, terminationGracePeriodSeconds=1)
                self.api.create(PODS, bare)
            else:
                amount = None if mode is Mode.WHOLE else 1
                self.api.create(RESOURCE_CLAIMS, claim_in(mode, name, self.namespace, amount))
                self.api.create(PODS, pod_with(name, self.namespace, command=_COMMAND))
            bound, running = (each.last(1) - begun for each in seen)
        started = self._first_line(name) - clock
        tool = self._tool_seconds() - tool
        self._end(name, mode)
        return Start(bound, started, running, tool)

    def _first_line(self, name: str) -> float:
        """When the container wrote it; Unix time."""
        flags = (f"--namespace={self.namespace}", "--timestamps")
        moment, _, _ = self._cluster.kubectl("logs", name, *flags).partition(" ")
        return datetime.fromisoformat(moment).timestamp()

    def _tool_seconds(self) -> float:
        """What all calls of efsmi have taken so far. A look at the cards is now and then among
        them, which a median leaves out."""
        families = (
            family
            for node in self.installation.machines
            for family in text_string_to_metric_families(self._agent_metrics(node))
        )
        name = f"{EFSMI_SECONDS.name}_sum"
        samples = (sample for family in families for sample in family.samples)
        return sum(sample.value for sample in samples if sample.name == name)

    def _agent_metrics(self, node: str) -> str:
        agent = self.installation.agent_pod(node)
        path = f"/api/v1/namespaces/{DRIVER_NAMESPACE}/pods/{agent}/proxy/metrics"
        return self._cluster.kubectl("get", f"--raw={path}")

    def _end(self, name: str, mode: Mode | None) -> None:
        self._cluster.delete_pods(self.namespace, name)
        if mode is not None:
            self.api.delete(RESOURCE_CLAIMS, name, namespace=self.namespace)
        self.installation.wait_for_rest()

    @property
    def _cluster(self) -> Cluster:
        return self.installation.cluster


def _is_running(found: Object) -> bool:
    return bool(found["status"]["phase"] == "Running")


def figures(starts: Mapping[str, Sequence[Start]]) -> dict[str, dict[str, float]]:
    """The columns, by what the pods ask for."""
    bare = starts[_BARE]
    usual = _after_binding(bare)
    found = {}
    for ask, each in starts.items():
        tool = median(start.tool for start in each)
        beyond = _after_binding(each) - usual
        whole = median(start.started for start in bare) / 100
        row = {
            "beyond_percent": round(beyond / whole, 1),
            "own_percent": round((beyond - tool) / whole, 1),
            "tool_p50_ms": round(1000 * tool),
        }
        for column in ("bound", "started", "running"):
            values = [getattr(start, column) for start in each]
            row[f"{column}_p50_ms"] = round(1000 * median(values))
            row[f"{column}_p90_ms"] = round(1000 * percentile(values, 0.9))
        found[ask] = row
    return found


def _after_binding(starts: Sequence[Start]) -> float:
    return median(start.started - start.bound for start in starts)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.start",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pods", type=int, default=40, help="of each kind, with each allocator")
    count = parser.parse_args().pods
    found = {}
    with real_nodes(chosen_with_dra()) as cluster:
        installation = Installation(cluster)
        api = connect(cluster.kubeconfig, effects=Effects(), user_agent="bench/1")
        for allocator in (ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER):
            values = {"allocator": allocator, "schedulerVersion": cluster.release.version}
            installation.install(installation.values(**values), report=say)
            with temporary_namespace(cluster, f"start-{allocator}") as namespace:
                rows = figures(Pods(installation, api, namespace, count).starts())
            table(
                f"{count} pods of each kind, allocator: {allocator}",
                ["", *rows[_BARE]],
                [[ask, *row.values()] for ask, row in rows.items()],
            )
            found[allocator] = rows
        api.close()
    result(found)


if __name__ == "__main__":
    main()
