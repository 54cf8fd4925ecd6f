"""``kubectl gcu plan``: whether the pods of a manifest would get their GCUs, where, and what would
be left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.kube.api import Api
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import (
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    CLASS_DRS,
    CLASS_SHARED,
    CLASS_WHOLE,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from kubectl_gcu.by_claims import nodes_by_claims
from kubectl_gcu.cluster_state import ClusterState
from kubectl_gcu.decision import LiveAllocator, Verdict
from kubectl_gcu.inventory import NodeView

_REPLICAS: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
_SHARES: Final = {
    RESOURCE_SHARED: (CLASS_SHARED, CAPACITY_SLICES),
    RESOURCE_DRS: (CLASS_DRS, CAPACITY_SIZE),
}


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """`node` is empty where the pod does not get all it asks for, and then `reason` says why.
    `devices` has the name of each device with the amount that it would give (empty: the card)."""

    pod: str
    node: str
    devices: tuple[tuple[str, str], ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if not self.node:
            return f"pod {self.pod}: does not fit: {self.reason}"
        parts = [f"{name} ({amount})" if amount else name for name, amount in self.devices]
        return f"pod {self.pod}: node {self.node}: {', '.join(parts)}"


class Planner:
    """Places one pod after the other, in the order of the manifest, on the cluster as it is."""

    def __init__(
        self, api: Api, objects: Mapping[Resource, tuple[Object, ...]], namespace: str
    ) -> None:
        """`objects` as for `LiveAllocator`; `namespace` is that of manifests which name none."""
        self._api = api
        self._objects = objects
        self._namespace = namespace
        self._allocator = LiveAllocator(objects)
        self._claims = {_key(each): each for each in objects[RESOURCE_CLAIMS]}
        self._templates: dict[tuple[str, str], Object] = {}

    def plan(self, manifests: Iterable[Object]) -> list[PlannedPod]:
        """Raises InvalidValue for what is no manifest."""
        found = [self._checked(each) for each in manifests if each]
        for each in found:
            if each["kind"] == "ResourceClaim":  # one that exists stays as it is
                self._claims.setdefault(_key(each), self._claim(_key(each), each))
            elif each["kind"] == "ResourceClaimTemplate":
                self._templates[_key(each)] = each
        return [self._place(pod) for each in found for pod in _pods(each)]

    def left(self) -> list[NodeView]:
        """The cards with all that was placed."""
        claims, pods = self._allocator.claims(), self._objects[PODS]
        state = ClusterState(self._objects[RESOURCE_SLICES], claims, self._objects[NODES], pods)
        return nodes_by_claims(state)

    def _checked(self, manifest: Any) -> Object:
        if not isinstance(manifest, dict) or not manifest.get("kind"):
            raise InvalidValue("the file has a document that is no Kubernetes object")
        metadata = {"namespace": self._namespace, "name": "unnamed", **manifest["metadata"]}
        return manifest | {"metadata": metadata}

    def _place(self, pod: Object) -> PlannedPod:
        metadata = pod["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}"
        try:
            claims = dict(self._claims_of(pod))
            placed = self._allocator.place(pod, claims)
        except (Refused, InvalidValue, NotFound) as error:
            return PlannedPod(name, "", reason=str(error))
        if isinstance(placed, Verdict):
            return PlannedPod(name, "", reason=placed.reason)
        for claim in placed:
            self._claims[_key(claim)] = claim
        given = [each for claim in placed for each in results(claim)]
        if not given:
            return PlannedPod(name, "", reason="it asks for no GCU by claims or limits")
        devices = tuple(
            (each.device, ", ".join(f"{k} {v}" for k, v in each.consumed.items())) for each in given
        )
        return PlannedPod(name, given[0].pool.partition("/")[2], devices)

    def _claims_of(self, pod: Object) -> Iterator[tuple[str, Object]]:
        namespace = pod["metadata"]["namespace"]
        for each in pod["spec"].get("resourceClaims") or ():
            if template := each.get("resourceClaimTemplateName"):
                made = f"{pod['metadata']['name']}-{each['name']}"
                spec = self._template(namespace, template)["spec"]["spec"]
                yield each["name"], self._claim((namespace, made), {"spec": spec})
            else:
                yield each["name"], self._named(namespace, each["resourceClaimName"])
        if requests := list(_requests(pod)):
            made = f"{pod['metadata']['name']}-enflame-limits"
            spec = {"devices": {"requests": requests}}
            yield "enflame-limits", self._claim((namespace, made), {"spec": spec})

    def _template(self, namespace: str, name: str) -> Object:
        known = self._templates.get((namespace, name))
        return known or self._api.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace)

    def _named(self, namespace: str, name: str) -> Object:
        known = self._claims.get((namespace, name))
        if known is None:
            raise InvalidValue(f"there is no ResourceClaim {namespace}/{name}")
        return known

    @staticmethod
    def _claim(key: tuple[str, str], made: Object) -> Object:
        namespace, name = key
        uid = f"planned {namespace}/{name}"
        metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1"}
        return {"metadata": metadata, "spec": made["spec"]}


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _pods(manifest: Object) -> Iterator[Object]:
    """The pods that the object stands for. Raises InvalidValue for a kind whose pods cannot be
    counted from it."""
    kind, spec = manifest["kind"], manifest.get("spec") or {}
    namespace, name = _key(manifest)
    if kind == "Pod":
        yield _pod(namespace, name, spec)
    elif kind in _REPLICAS:
        for number in range(int(spec.get(_REPLICAS[kind], 1))):
            yield _pod(namespace, f"{name}-{number}", spec["template"]["spec"])
    elif "template" in spec and kind != "ResourceClaimTemplate":
        raise InvalidValue(
            f"how many pods {kind} {namespace}/{name} makes is not known here",
            remedy="give a Pod of it, or a Deployment, StatefulSet, ReplicaSet or Job",
        )


def _pod(namespace: str, name: str, spec: Object) -> Object:
    uid = f"planned {namespace}/{name}"
    return {"metadata": {"namespace": namespace, "name": name, "uid": uid}, "spec": spec}


def _requests(pod: Object) -> Iterator[Object]:
    """What the policy for the vendor's limits makes of a pod's containers."""
    for number, container in enumerate(pod["spec"].get("containers") or ()):
        for limit, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            exactly: Object = {"allocationMode": "ExactCount"}
            if limit == RESOURCE_WHOLE:
                exactly |= {"deviceClassName": CLASS_WHOLE, "count": int(amount)}
            elif limit in _SHARES:
                name, capacity = _SHARES[limit]
                exactly |= {"deviceClassName": name, "count": 1}
                exactly["capacity"] = {"requests": {capacity: str(amount)}}
            else:
                continue
            yield {"name": f"gcu-{number}", "exactly": exactly}
