"""A cluster without DRA and a node in it: simulated machine, sockets, a device manager."""

from __future__ import annotations

import threading

from dra_driver.agent.agent import Agent
from dra_driver.kube.api import Listing, PatchType, ServerVersion
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.resources import EVENTS, NODES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.plugin_device import RESOURCES
from tests.unit.agent.node import Claims, Node
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager


class OldCluster(Claims):
    """An API server of an old version, which has one Node and records what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.server = ServerVersion(1, 30, "v1.30.14")
        self.kubelet = "v1.30.14"
        self.serves_dra = False
        self.events: list[tuple[str, str]] = []
        self.annotations: dict[str, str] = {}
        self.allocatable: dict[str, str] = {}
        self.written = threading.Condition()
        self.asked = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    def server_version(self) -> ServerVersion:
        self.asked.set()
        assert self.answers.wait(30)
        if self.away:
            raise Unavailable("the API server did not answer")
        return self.server

    def create(self, resource: Resource, body: Object, **how: object) -> Object:
        if resource is not EVENTS:
            raise Unavailable("the API server did not answer")
        with self.written:
            self.events.append((body["reason"], body["note"]))
            self.written.notify_all()
        return body

    def serves(self, resource: Resource) -> bool:
        return self.serves_dra

    def list(self, resource: Resource, **selectors: str) -> Listing:
        if self.serves_dra:
            return Listing((), "1")
        raise NotFound("the server could not find the requested resource", status=404)

    def patch(self, resource: Resource, name: str, body: Object, **how: object) -> Object:
        if self.away or resource is not NODES:
            raise Unavailable("the API server did not answer")
        assert how["patch_type"] is PatchType.APPLY
        with self.written:
            self.annotations |= body["metadata"]["annotations"]
            self.written.notify_all()
        return body

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        if resource is NODES and not self.away:
            return {
                "metadata": {"name": name},
                "status": {
                    "nodeInfo": {"kubeletVersion": self.kubelet},
                    "allocatable": dict(self.allocatable),
                },
            }
        return super().get(resource, name, namespace=namespace)


class Place:
    """A node, its kubelet, and agents one after the other."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.api = OldCluster()
        node.api = self.api
        node.mode = "auto"
        self.kubelet = DeviceManager(node.kubelet)
        self.kubelet.start()

    def start(self) -> Agent:
        agent = self.node.started()
        self.becomes(2, 12, 12)
        return agent

    def counts(self) -> tuple[int, ...]:
        return tuple(len(self.kubelet.ids(resource)) for resource in RESOURCES.values())

    def becomes(self, *wanted: int) -> None:
        self.kubelet.until(lambda: self.counts() == wanted, f"{wanted}, not {self.counts()}")
