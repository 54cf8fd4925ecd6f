"""Slices as the agent publishes them, claims and pods as users write them; and all that exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.devices.device import counter_sets
from dra_driver.model.names import CLASS_WHOLE, DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.workloads import pod

TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
TAINT = {"key": f"{DRIVER}/allocated-by", "value": "controller", "effect": "NoSchedule"}


def whole(bus: int, *taints: Object) -> Object:
    address = f"0000:{bus:02x}:00.0"
    return {
        "name": f"whole-0000-{bus:02x}-00-0",
        "attributes": {
            "type": {"string": "whole"},
            "card": {"string": address},
            "model": {"string": "S60"},
            "pcieSwitch": {"string": f"0000:{bus // 2:02x}:1f.0"},
        },
        "capacity": {"memory": {"value": "42976Mi"}},
        "taints": [TAINT, *taints],
    }


def shared(bus: int) -> Object:
    """A card's shared slices, six of them."""
    slices = {"default": "1", "validRange": {"min": "1", "max": "6", "step": "1"}}
    return {
        "name": f"shared-0000-{bus:02x}-00-0",
        "attributes": {"type": {"string": "shared"}, "card": {"string": f"0000:{bus:02x}:00.0"}},
        "capacity": {"slices": {"value": "6", "requestPolicy": slices}},
        "allowMultipleAllocations": True,
        "taints": [TAINT],
    }


def resource_slices(node: str, devices: Sequence[Object]) -> list[Object]:
    """One with the devices, and one with the counters that they consume, if they do."""
    contents: list[Object] = [{"devices": list(devices)}]
    if counters := counter_sets(devices):
        contents.append({"sharedCounters": counters})
    pool = {"name": f"{DRIVER}/{node}", "generation": 1, "resourceSliceCount": len(contents)}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{index}"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **content},
        }
        for index, content in enumerate(contents)
    ]


def resource_slice(node: str, devices: Sequence[Object]) -> Object:
    """The only one, of devices without counters."""
    [only] = resource_slices(node, devices)
    return only


def claim(name: str, namespace: str, *, count: int = 1, selector: str = "") -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": claim_spec(count=count, selector=selector),
    }


def template(name: str, namespace: str) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": claim_spec()},
    }


def claim_spec(*, count: int = 1, selector: str = "") -> Object:
    exactly: Object = {"deviceClassName": CLASS_WHOLE, "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}}


def pod_with(name: str, namespace: str, *claims: str, template: str = "", **spec: Any) -> Object:
    """A pod whose container uses the claims, or one made from the template."""
    references = [{"name": each, "resourceClaimName": each} for each in claims]
    if template:
        references.append({"name": "made", "resourceClaimTemplateName": template})
    made = pod(name, namespace, resourceClaims=references, **spec)
    used = [{"name": each["name"]} for each in references]
    made["spec"]["containers"][0].setdefault("resources", {})["claims"] = used
    return made


def with_cpu(made: Object, cpu: str) -> Object:
    """The pod, whose container asks for so much of it."""
    made["spec"]["containers"][0].setdefault("resources", {})["requests"] = {"cpu": cpu}
    return made


IGNORES_PORTS: Final = "--unconsidered-plugins=NodePorts"
"""Of a controller for which only kube-scheduler knows where a port is free."""


def with_port(made: Object) -> Object:
    """The pod, with a port of its node."""
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return made


def node_of(allocated: Object) -> str:
    """The node of the claim's first device, by its pool."""
    return results(allocated)[0].pool.partition("/")[2]


def everything(cluster: Cluster) -> set[str]:
    """Every object that a chart could have made, as kind/namespace/name."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "--output=name").split()
    passing = {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "namespaces"}
    wanted = ",".join(sorted(set(kinds) - passing))
    items = cluster.get(wanted, "--all-namespaces")["items"]
    return {
        f"{each['kind']}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for each in items
        if each["metadata"].get("namespace") != "kube-system"
    }
