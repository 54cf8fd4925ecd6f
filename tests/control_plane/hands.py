"""What users, administrators and kubelets would do, in the test's namespace."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from dra_driver.kube.client import Client
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.control_plane.objects import claim, pod_with, resource_slice

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

    def cordon(self, node: str) -> None:
        self._api.patch(NODES, node, {"spec": {"unschedulable": True}})

    def uncordon(self, node: str) -> None:
        self._api.patch(NODES, node, {"spec": {"unschedulable": None}})

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

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._cluster.kubectl(*arguments, "--namespace", self._namespace, stdin=stdin)

    def clean(self) -> None:
        for resource, name in self._made:
            self._api.delete(resource, name)

    def _drop(self, name: str) -> None:
        patch = partial(self._api.patch, RESOURCE_CLAIMS, name, namespace=self._namespace)
        with suppress(NotFound):
            patch({"status": None}, subresource="status")
            patch({"metadata": {"finalizers": None}})
            self._api.delete(RESOURCE_CLAIMS, name, namespace=self._namespace)

    def _create(self, resource: Resource, body: Object) -> None:
        self._api.create(resource, body)
        self._made.append((resource, body["metadata"]["name"]))
