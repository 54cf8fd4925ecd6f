"""What a stolen token would be tried for, with objects that are really there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import (
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER, FIELD_MANAGER, SCHEDULING_GATE
from dra_driver.model.pci import PciAddress
from tests.cluster.cluster import Cluster
from tests.cluster.workloads import pod
from tests.control_plane.driver import Driver
from tests.control_plane.objects import claim, resource_slice, whole
from tests.kill.grants import Claims, Grant

SECRETS = Resource("", "v1", "secrets", "Secret", namespaced=True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
CARD = PciAddress.parse("0000:0d:00.0")


@dataclass(frozen=True, slots=True)
class Stage:
    """`thief` has the token; `own` is the node in it, if there is one, and `other` another. On
    both a claim is allocated, named as the node; the claim ``free`` is not."""

    thief: Client
    namespace: str
    own: str
    other: str

    def claim(self, name: str) -> Object:
        return self.thief.get(RESOURCE_CLAIMS, name, namespace=self.namespace)

    def make_slice(
        self, *, name: str = "", metadata: Object | None = None, **spec: object
    ) -> object:
        """One of its own node, but for the keys of `spec`; None takes a key away."""
        body = resource_slice(self.own, [whole(0x0D)])
        body["metadata"] = {"name": name or f"{self.own}-{DRIVER}-000"} | (metadata or {})
        body["spec"] = {
            key: value for key, value in (body["spec"] | spec).items() if value is not None
        }
        return self.thief.create(RESOURCE_SLICES, body)

    def tell(self, name: str, driver: str = DRIVER, index: int = 0) -> object:
        """Write into a claim's ``status.devices``, as the agent does."""
        device = {"driver": driver, "pool": f"{DRIVER}/{name}", "device": "whole-0000-0d-00-0"}
        body: Object = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "status": {"devices": [{**device, "data": {"index": index}}]},
        }
        return self.thief.patch(
            RESOURCE_CLAIMS,
            name,
            body,
            namespace=self.namespace,
            patch_type=PatchType.APPLY,
            subresource="status",
            field_manager=FIELD_MANAGER,
        )

    def patch_status(self, name: str, status: Object) -> object:
        return self.thief.patch(
            RESOURCE_CLAIMS,
            name,
            {"status": status},
            namespace=self.namespace,
            subresource="status",
        )

    def replace_status(self, name: str, **status: object) -> object:
        """With these keys of its status, and the others as they are; None takes a key away."""
        found = self.claim(name)
        wanted = {**found.get("status", {}), **status}
        kept = {key: value for key, value in wanted.items() if value is not None}
        return self.thief.replace(RESOURCE_CLAIMS, found | {"status": kept}, subresource="status")

    def replace_metadata(self, name: str, **metadata: object) -> object:
        found = self.claim(name)
        return self.thief.replace(
            RESOURCE_CLAIMS, found | {"metadata": found["metadata"] | metadata}
        )

    def report(self, controller: str, *, metadata: Object | None = None, **more: object) -> object:
        """Write an event about a pod in the name of `controller`."""
        names = {"generateName": "tried-", "namespace": self.namespace}
        return self.thief.create(
            EVENTS,
            {
                "apiVersion": EVENTS.api_version,
                "kind": EVENTS.kind,
                "metadata": names | (metadata or {}),
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": controller,
                "reportingInstance": "tried",
                "action": "Tried",
                "reason": "Tried",
                "regarding": {"kind": "Pod", "name": "pod", "namespace": self.namespace},
                "type": "Warning",
                **more,
            },
        )

    def patch(self, resource: Resource, name: str, body: Object) -> object:
        namespace = self.namespace if resource.namespaced else ""
        return self.thief.patch(resource, name, body, namespace=namespace)

    def read(self, resource: Resource, name: str) -> object:
        return self.thief.get(resource, name, namespace=self.namespace)

    def create(self, resource: Resource, **body: object) -> object:
        return self.thief.create(
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {
                    "name": "planted",
                    **({"namespace": self.namespace} if resource.namespaced else {}),
                },
                **body,
            },
        )

    def delete(self, resource: Resource, name: str) -> None:
        namespace = self.namespace if resource.namespaced else ""
        self.thief.delete(resource, name, namespace=namespace)

    def watch(self, resource: Resource, *, field_selector: str = "") -> None:
        """Ends at once where it is refused; at its first event, or in a second, where not."""
        watch = self.thief.watch(
            resource, resource_version="0", timeout=1.0, field_selector=field_selector
        )
        watch.close()


def set_up(api: Client, thief: Client, namespace: str, own: str, other: str) -> Stage:
    """Make what the attempts are about, as administrator."""
    for node in (own, other):
        Claims(api, namespace, node).add(node, Grant(Mode.WHOLE, CARD))
    api.create(RESOURCE_SLICES, resource_slice(other, [whole(0x0D)]))
    api.create(RESOURCE_CLAIMS, claim("free", namespace))
    gates = [{"name": SCHEDULING_GATE}, {"name": "example.com/wait"}]
    api.create(PODS, pod("pod", namespace, schedulingGates=gates))
    return Stage(thief, namespace, own, other)


def is_refused(attempt: Callable[[], object]) -> bool:
    """Whether an admission policy refuses it; so policies can be waited for."""
    try:
        attempt()
    except KubeError as error:
        return "ValidatingAdmissionPolicy" in str(error)
    return False


@contextmanager
def staged(
    cluster: Cluster, api: Client, driver: Driver, folder: Path, program: str
) -> Iterator[Stage]:
    """A stage of its own for the token of a program, and nothing of it afterwards."""
    own, other, namespace = (f"{program}-{secrets.token_hex(3)}" for _ in range(3))
    for node in (own, other):
        cluster.add_node_object(node)
    cluster.kubectl("create", "namespace", namespace)
    path = folder / program
    kubeconfig = driver.kubeconfig(program, path, node=own if program == "agent" else "")
    # By which the API server knows who wrote a field: as the program's own.
    thief = connect(kubeconfig, effects=Effects(), user_agent=f"gcu-dra-{program}/1")
    yield set_up(api, thief, namespace, own, other)
    thief.close()
    api.delete(RESOURCE_SLICES, f"{other}-0")
    for node in (own, other):
        api.delete(NODES, node)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
