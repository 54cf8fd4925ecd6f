"""Nodes of a control plane without kubelets."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from dra_driver.kube.client import Client
from dra_driver.kube.resources import NODES, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.objects import resource_slice, resource_slices


class Machines:
    """Nodes without kubelets, and what their agents would have published."""

    def __init__(self, cluster: Cluster, api: Client) -> None:
        self._cluster = cluster
        self._api = api
        self._nodes: list[str] = []

    def add(self, devices: Sequence[Object], **capacity: str) -> str:
        """A node with these devices; gives its name. `capacity` is for others than we give it."""
        name = f"node-{secrets.token_hex(3)}"
        self._cluster.add_node_object(name, {"machine": name}, capacity)
        self._nodes.append(name)
        self.publish(name, devices)
        return name

    def publish(self, name: str, devices: Sequence[Object]) -> None:
        """As the node's agent would."""
        for each in resource_slices(name, devices):
            self._api.create(RESOURCE_SLICES, each)

    def add_copy(self, of: str) -> str:
        """A node with the slices of another one, as an autoscaler would have it: with a suffix to
        the names of slices and pools."""
        name = f"node-{secrets.token_hex(3)}"
        self._cluster.add_node_object(name, {"machine": name})
        self._nodes.append(name)
        for each in self._slices(of):
            spec = each["spec"]
            pool = spec["pool"] | {"name": f"{spec['pool']['name']}-{name}"}
            metadata = {"name": f"{each['metadata']['name']}-{name}"}
            made = each | {"metadata": metadata, "spec": spec | {"pool": pool, "nodeName": name}}
            self._api.create(RESOURCE_SLICES, made)
        return name

    def withdraw(self, name: str) -> None:
        """Take away what was published."""
        for each in self._slices(name):
            self._api.delete(RESOURCE_SLICES, each["metadata"]["name"])

    def _slices(self, node: str) -> tuple[Object, ...]:
        return self._api.list(RESOURCE_SLICES, field_selector=f"spec.nodeName={node}").items

    def add_many(self, count: int, devices: Sequence[Object]) -> list[str]:
        """So many nodes with these devices each, all at a time; gives their names in order."""
        made = [f"node-{secrets.token_hex(3)}" for _ in range(count)]
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "Declared"}
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        for name in made:
            labels = {"machine": name, "kubernetes.io/hostname": name}
            metadata = {"name": name, "labels": labels}
            self._api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
            self._nodes.append(name)
            self._api.patch(NODES, name, {"status": status}, subresource="status")
            self._api.create(RESOURCE_SLICES, resource_slice(name, devices))

        def untainted() -> bool:
            nodes = self._api.list(NODES).items
            return not any(
                node["spec"].get("taints") for node in nodes if node["metadata"]["name"] in made
            )

        wait_until(untainted, PATIENCE, "the nodes without the not-ready taint")
        return made

    def remove(self, name: str) -> None:
        """The node, and what its agent published: kube-controller-manager does the same."""
        self._nodes.remove(name)
        self.withdraw(name)
        self._api.delete(NODES, name)

    def remove_all(self) -> None:
        for name in [*self._nodes]:
            self.remove(name)
