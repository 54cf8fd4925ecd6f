"""What a stolen token would be tried for, with objects that are really there."""

from __future__ import annotations

from dataclasses import dataclass

from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client
from dra_driver.kube.resources import (
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claim import Object
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER, SCHEDULING_GATE
from dra_driver.model.pci import PciAddress
from tests.cluster.workloads import pod
from tests.control_plane.objects import claim, resource_slice, whole
from tests.kill.grants import Claims, Grant

SECRETS = Resource("", "v1", "secrets", "Secret", namespaced=True)
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

    def make_slice(self, **spec: object) -> object:
        """One of its own node, but for the keys of `spec`; None takes a key away."""
        body = resource_slice(self.own, [whole(0x0D)])
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
            field_manager="thief",
            force=True,
        )

    def patch_status(self, name: str, status: Object) -> object:
        return self.thief.patch(
            RESOURCE_CLAIMS,
            name,
            {"status": status},
            namespace=self.namespace,
            subresource="status",
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

    def watch(self, resource: Resource, **selectors: str) -> None:
        """Ends at once where it is refused; at its first event, or in a second, where not."""
        watch = self.thief.watch(resource, resource_version="0", timeout=1.0, **selectors)
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
