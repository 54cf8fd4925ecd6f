"""Workloads with constraints that only kube-scheduler checks, and what becomes of their pods."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from bench import fleet
from bench.fleet import Object
from bench.scenarios import Ask, Scenario
from bench.users import NAMESPACE
from controller.cache.claims import allocated_node
from controller.cache.pods import nominated_node, owning_pod
from dra_driver.kube.api import Change
from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.kube.watch import Reflector

REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet", namespaced=True)
TEMPLATES: Final = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True
)
ZONE: Final = "topology.kubernetes.io/zone"
RDMA: Final = "example.com/rdma"
_TEMPLATE: Final = "card"
_SYNC: Final = 600.0  # seconds for the first list
_HOST_PORT: Final = 8080


def _apart(spec: Object, name: str) -> Object:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": _selector(name)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return spec | {"affinity": {"podAntiAffinity": required}}


def _over_zones(spec: Object, name: str) -> Object:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(name),
    }
    return spec | {"topologySpreadConstraints": [constraint]}


def _with_rdma(spec: Object, _name: str) -> Object:
    [container] = spec["containers"]
    resources = container["resources"] | {"limits": {RDMA: "1"}}
    return spec | {"containers": [container | {"resources": resources}]}


def _with_port(spec: Object, _name: str) -> Object:
    [container] = spec["containers"]
    ports = [{"containerPort": _HOST_PORT, "hostPort": _HOST_PORT}]
    return spec | {"containers": [container | {"ports": ports}]}


CONSTRAINTS: Final = {
    "apart": _apart,
    "zones": _over_zones,
    "rdma": _with_rdma,
    "ports": _with_port,
}


def claim_template(scenario: Scenario) -> Object:
    """For a whole card."""
    requests = [Ask.WHOLE.request(scenario.devices)]
    return {
        "apiVersion": TEMPLATES.api_version,
        "kind": TEMPLATES.kind,
        "metadata": {"name": _TEMPLATE, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def replica_set(scenario: Scenario, name: str, replicas: int, constraint: str | None) -> Object:
    """So many pods, each with a claim from the template; None for the same without constraint."""
    spec = scenario.pod(name, NAMESPACE, "card")["spec"]
    spec["resourceClaims"] = [{"name": "card", "resourceClaimTemplateName": _TEMPLATE}]
    if constraint is not None:
        spec = CONSTRAINTS[constraint](spec, name)
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": _selector(name),
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def make_nodes_differ(api: Client, nodes: Resource, count: int, with_rdma: int) -> None:
    """Nodes in four zones, of which some, evenly among the others, have the resource."""
    step = max(1, count // with_rdma)
    for number in range(count):
        name = fleet.node_name(number)
        api.patch(nodes, name, {"metadata": {"labels": {ZONE: f"zone-{number % 4}"}}})
        # Nodes that are found last by name, so that nobody has them by chance.
        if (count - 1 - number) % step == 0 and (count - 1 - number) // step < with_rdma:
            amounts = {RDMA: str(fleet.CARDS)}
            status = {"capacity": amounts, "allocatable": amounts}
            api.patch(nodes, name, {"status": status}, subresource="status")


@dataclass(slots=True)
class FirstNodes:
    """By the UID of each pod, the first node that its claim was allocated on, or that was named for
    it. Thread-safe."""

    by_pod: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_replace(self, items: Sequence[Object]) -> None:
        for item in items:
            self.on_event(Change.ADDED, item)

    def on_event(self, _change: Change, obj: Object) -> None:
        if obj["kind"] == PODS.kind:
            uid, node = str(obj["metadata"]["uid"]), nominated_node(obj)
        else:
            uid, node = owning_pod(obj) or "", allocated_node(obj) or ""
        if uid and node:
            with self._lock:
                self.by_pod.setdefault(uid, node)

    def share_right(self, pods: Sequence[Object]) -> float:
        """Of these bound pods, how many (0 to 1) are on the node that came first for them."""
        right = [
            pod
            for pod in pods
            if self.by_pod.get(pod["metadata"]["uid"]) == pod["spec"]["nodeName"]
        ]
        return len(right) / len(pods)


@contextmanager
def first_nodes(api: Client, scenario: Scenario) -> Iterator[FirstNodes]:
    """What is seen until the end: of claims where the controller allocates, otherwise of pods."""
    found = FirstNodes()
    is_named = "--allocator=scheduler" in scenario.flags
    reflector = Reflector(api, PODS if is_named else RESOURCE_CLAIMS, found, namespace=NAMESPACE)
    reflector.start()
    if not reflector.synced.wait(_SYNC):
        raise TimeoutError(f"nothing could be listed in {_SYNC:g} s")
    try:
        yield found
    finally:
        reflector.stop(10.0)


def _selector(name: str) -> Object:
    return {"matchLabels": {"app": name}}
