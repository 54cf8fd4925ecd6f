"""What users, administrators and kubelets would do, in the test's namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.control_plane.objects import claim, pod_with, resource_slice

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
_THREADS = 8

T = TypeVar("T")


class Hands:
    """Cluster-wide objects that it makes are gone after the test."""

    def __init__(self, cluster: Cluster, api: Client, namespace: str) -> None:
        self._cluster = cluster
        self._api = api
        self._namespace = namespace
        self._made: list[tuple[Resource, str]] = []

    def start(self, name: str, **spec: Any) -> None:
        """A claim for a card, and a pod that uses it, both of that name."""
        self._api.create(RESOURCE_CLAIMS, claim(name, self._namespace))
        self._api.create(PODS, pod_with(name, self._namespace, name, **spec))

    def end(self, name: str) -> None:
        """Delete the pod at once: there is no kubelet to confirm its end."""
        self._cluster.end_pod(self._namespace, name)

    def end_all(self) -> None:
        """Delete all pods and claims, allocated ones too, in a few seconds for a thousand of them:
        nobody else ends what has no kubelet so quickly."""
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        self._cluster.call("DELETE", pods, {"gracePeriodSeconds": 0})
        claims = self._api.list(RESOURCE_CLAIMS, namespace=self._namespace).items
        self.for_all(self._drop, [claim["metadata"]["name"] for claim in claims])

    def for_all(self, call: Callable[[T], object], items: Iterable[T]) -> None:
        """Some at a time; raises what one of them raised."""
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(call, items))

    def clear(self, found: Object) -> Object:
        """Take the claim's allocation away, as kube-scheduler does when it gives one up."""
        status = {key: value for key, value in found["status"].items() if key != "allocation"}
        return self._api.replace(RESOURCE_CLAIMS, found | {"status": status}, subresource="status")

    def reserve(self, found: Object, *pods: str) -> Object:
        """Reserve the allocated claim for the pods, as kube-scheduler does before it binds them."""
        known = {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in self._api.list(PODS, namespace=self._namespace).items
        }
        users = [{"resource": "pods", "name": name, "uid": known[name]} for name in pods]
        status = found["status"] | {"reservedFor": users}
        return self._api.replace(RESOURCE_CLAIMS, found | {"status": status}, subresource="status")

    def annotate(self, found: Object, text: str) -> Object:
        """Change the claim in what means nothing."""
        metadata = found["metadata"] | {"annotations": {"example.com/note": text}}
        return self._api.replace(RESOURCE_CLAIMS, found | {"metadata": metadata})

    def set_status(self, resource: Resource, name: str, status: Object) -> None:
        self._api.patch(
            resource,
            name,
            {"status": status},
            namespace=self._namespace if resource.namespaced else "",
            patch_type=PatchType.STRATEGIC_MERGE,
            subresource="status",
        )

    def lift(self, pod: str, gate: str) -> None:
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]}}
        self._api.patch(
            PODS, pod, body, namespace=self._namespace, patch_type=PatchType.STRATEGIC_MERGE
        )

    def cordon(self, node: str) -> None:
        self._api.patch(NODES, node, {"spec": {"unschedulable": True}})

    def uncordon(self, node: str) -> None:
        self._api.patch(NODES, node, {"spec": {"unschedulable": None}})

    def taint(self, node: str) -> None:
        self._cluster.kubectl("taint", "node", node, "example.com/maintenance=:NoSchedule")

    def break_down(self, node: str) -> None:
        self._set_ready(node, "False")

    def lose(self, node: str) -> None:
        """As kube-controller-manager does with a node that it has not heard of for a while."""
        self._set_ready(node, "Unknown")
        self._api.patch(NODES, node, {"spec": {"taints": [UNREACHABLE]}})

    def find_again(self, node: str) -> None:
        self._set_ready(node, "True")
        self._api.patch(NODES, node, {"spec": {"taints": None}})

    def drain(self, node: str) -> None:
        """`kubectl drain`; returns when its pods are gone."""
        left = ("--ignore-daemonsets", "--disable-eviction")
        self._cluster.kubectl("drain", node, *left, "--grace-period=0", "--timeout=30s")

    def make_class(self, selector: str, *config: Object) -> str:
        """Somebody's own DeviceClass; gives its name."""
        name = f"class-{secrets.token_hex(3)}"
        body: Object = {
            "apiVersion": DEVICE_CLASSES.api_version,
            "kind": DEVICE_CLASSES.kind,
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": selector}}], "config": list(config)},
        }
        self._create(DEVICE_CLASSES, body)
        return name

    def publish_other(self, node: str, driver: str) -> None:
        """One device of another driver on the node."""
        body = resource_slice(node, [{"name": "device-0"}])
        body["metadata"]["name"] = f"{node}-{driver}"
        body["spec"] |= {
            "driver": driver,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        }
        self._create(RESOURCE_SLICES, body)

    def bind_volume(self, name: str, node: str) -> None:
        """A claim for a volume that lies on the node, as a provisioner would have bound it."""
        term = {"key": "machine", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        volume = f"volume-{secrets.token_hex(3)}"
        common: Object = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        body: Object = {
            "apiVersion": "v1",
            "kind": PERSISTENT_VOLUMES.kind,
            "metadata": {"name": volume},
            "spec": {
                **common,
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/nowhere"},
                "nodeAffinity": {"required": required},
            },
        }
        self._create(PERSISTENT_VOLUMES, body)
        wanted: Object = {
            "apiVersion": "v1",
            "kind": PERSISTENT_VOLUME_CLAIMS.kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {
                **common,
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": volume,
            },
        }
        self._api.create(PERSISTENT_VOLUME_CLAIMS, wanted)

    def bind(self, pod: str, node: str) -> None:
        """As kube-scheduler does in the end."""
        metadata = {"name": pod, "namespace": self._namespace}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}/binding"
        self._cluster.call("POST", path, body)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl(*arguments, "--namespace", self._namespace, stdin=stdin)

    def clean(self) -> None:
        for resource, name in self._made:
            self._api.delete(resource, name)

    def _set_ready(self, node: str, status: str) -> None:
        condition = {"type": "Ready", "status": status, "reason": "Declared"}
        self.set_status(NODES, node, {"conditions": [condition]})

    def _drop(self, name: str) -> None:
        patch = partial(self._api.patch, RESOURCE_CLAIMS, name, namespace=self._namespace)
        with suppress(NotFound):
            patch({"status": None}, subresource="status")
            patch({"metadata": {"finalizers": None}})
            self._api.delete(RESOURCE_CLAIMS, name, namespace=self._namespace)

    def _create(self, resource: Resource, body: Object) -> None:
        self._api.create(resource, body)
        self._made.append((resource, body["metadata"]["name"]))
