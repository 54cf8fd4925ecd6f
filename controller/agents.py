"""On which nodes an agent runs, and on which it should and does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controller import metric_specs as specs
from dra_driver.kube.api import Api, Change
from dra_driver.kube.decode import Typed
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object

_AGENTS: Final = "app.kubernetes.io/name=gcu-dra-driver,app.kubernetes.io/component=agent"


_TERMS: Final = {"nodeSelectorTerms": [{"matchFields": [{"key": str, "values": [str]}]}]}
AGENT_POD: Final = {
    "metadata": {"name": str, "uid": str, "resourceVersion": str},
    "spec": {
        "nodeName": str,
        "runtimeClassName": str,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _TERMS}},
    },
    "status": {
        "containerStatuses": [{"state": dict[str, Any], "ready": bool}],
        "conditions": [{"type": str, "status": str}],
    },
}
"""What is read of an agent's pod: there is one for each node."""


@dataclass(frozen=True, slots=True)
class _AgentPod:
    """`node` is where it is, or is to be. A pod that runs may be `is_lost`: the kubelet of its node
    has gone silent, and its status is of before."""

    node: str
    runtime_class: str
    is_running: bool
    is_lost: bool

    @classmethod
    def of(cls, pod: Object) -> _AgentPod:
        spec, status = pod["spec"], pod.get("status") or {}
        containers = status.get("containerStatuses") or ()
        # The node controller changes the condition alone, the kubelet both.
        was_ready = any(each.get("ready") for each in containers)
        conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        return cls(
            node=str(spec.get("nodeName") or _wanted_node(spec)),
            runtime_class=str(spec.get("runtimeClassName") or ""),
            is_running=any("running" in (each.get("state") or {}) for each in containers),
            is_lost=was_ready and conditions.get("Ready") == "False",
        )


class RunningAgents(Collector):
    """The handler of a watch of the agents' pods, and a metric. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, _AgentPod] = {}  # by UID
        self._is_synced = False

    @property
    def is_synced(self) -> bool:
        """Whether the pods were listed."""
        with self._lock:
            return self._is_synced

    def nodes(self) -> set[str]:
        """The nodes on which an agent's container runs."""
        return {pod.node for pod in self._running().values()}

    def uids(self) -> set[str]:
        """The UIDs of the pods whose container runs."""
        return set(self._running())

    def runtime_classes(self) -> set[str]:
        """The RuntimeClasses of these pods: the vendor's, if any."""
        return {pod.runtime_class for pod in self._running().values() if pod.runtime_class}

    def nodes_without(self) -> set[str]:
        """The nodes that have or are to have a pod of the agents, and none that runs there as far
        as the kubelet says; and those whose kubelet has gone silent."""
        with self._lock:
            pods = list(self._pods.values())
        return {pod.node for pod in pods if pod.node} - {
            pod.node for pod in pods if pod.is_running and not pod.is_lost
        }

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called for each request of metrics."""
        yield specs.NODES_WITHOUT_AGENT.samples({(node,): 1 for node in self.nodes_without()})

    def on_replace(self, items: Sequence[Object]) -> None:
        pods = {_uid(pod): _AgentPod.of(pod) for pod in items}
        with self._lock:
            self._pods = pods
            self._is_synced = True

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            if change is Change.DELETED:
                self._pods.pop(_uid(obj), None)
            else:
                self._pods[_uid(obj)] = _AgentPod.of(obj)

    def _running(self) -> dict[str, _AgentPod]:
        with self._lock:
            return {uid: pod for uid, pod in self._pods.items() if pod.is_running}


def agents_reflector(api: Api, namespace: str, agents: RunningAgents) -> Reflector:
    """Watches the agents' pods in `namespace`."""
    return Reflector(
        api,
        PODS,
        agents,
        namespace=namespace,
        label_selector=_AGENTS,
        decoder=Typed(AGENT_POD),
    )


def _wanted_node(spec: Object) -> str:
    """For which node the DaemonSet made a pod that is not scheduled yet; empty if it does not
    say."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(required) or {}
    names = (
        value
        for term in affinity.get("nodeSelectorTerms") or ()
        for field in term.get("matchFields") or ()
        if field.get("key") == "metadata.name"
        for value in field.get("values") or ()
    )
    return next(names, "")


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
