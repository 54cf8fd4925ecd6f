"""A cluster's state that was saved before: the output of ``kubectl get -o json`` (or yaml)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from controller.allocator.taints import with_selector
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, claim_names
from dra_driver.model.errors import InvalidValue
from kubectl_gcu.cluster.driver_pods import driver_pods
from kubectl_gcu.cluster.manifest import flat, load_documents, malformed

_READ = {
    each.kind: each
    for each in (
        RESOURCE_SLICES,
        DEVICE_CLASSES,
        NAMESPACES,
        NODES,
        RESOURCE_CLAIMS,
        PODS,
        RESOURCE_CLAIM_TEMPLATES,
        DEVICE_TAINT_RULES,
    )
}
_NEEDED = (RESOURCE_SLICES, DEVICE_CLASSES, NODES, PODS)


class SavedState:
    """The objects of the file."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidValue for a file that cannot be read, or is not of the whole cluster: what
        it lacks would look free."""
        saved: dict[Resource, list[Object]] = {resource: [] for resource in _READ.values()}
        for obj in flat(load_documents(str(path))):
            if resource := _READ.get(obj["kind"]):
                if resource is RESOURCE_SLICES and obj.get("apiVersion") != resource.api_version:
                    raise InvalidValue(f"{path} has ResourceSlices of {obj.get('apiVersion')}")
                saved[resource].append(_as_v1(obj))
        if lack := _lack(saved):
            always = (kind.plural for kind in _READ.values() if kind is not DEVICE_TAINT_RULES)
            raise InvalidValue(
                f"{path} has {lack}",
                remedy=f"save them with kubectl get {','.join(always)} -A -o json",
            )
        self.objects: Mapping[Resource, tuple[Object, ...]] = {
            resource: tuple(objects) for resource, objects in saved.items()
        }

    def template(self, namespace: str, name: str) -> Object:
        """The claim template; raises NotFound."""
        for template in self.objects[RESOURCE_CLAIM_TEMPLATES]:
            metadata = template["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return template
        raise NotFound(f"there is no ResourceClaimTemplate {namespace}/{name}", status=404)


def _lack(saved: Mapping[Resource, Sequence[Object]]) -> str:
    """What is missing of a whole cluster, in words; empty if nothing is. Raises InvalidValue for a
    pod or claim that no API server could have."""
    if missing := [resource.plural for resource in _NEEDED if not saved[resource]]:
        return f"no {', '.join(missing)}"
    for obj in (*saved[RESOURCE_CLAIMS], *saved[PODS]):
        with malformed(obj):
            obj["metadata"]["uid"]
    if not any(driver_pods(saved[PODS], each) for each in ("agent", "controller")):
        return "no pod of this driver, and so not all namespaces"
    if not saved[RESOURCE_CLAIMS] and any(map(_runs_with_claim, saved[PODS])):
        return f"no {RESOURCE_CLAIMS.plural}, and running pods have some"
    return ""


def _runs_with_claim(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and any(claim_names(pod).values())


def _as_v1(obj: Object) -> Object:
    kind = DEVICE_TAINT_RULES_V1BETA2
    is_old_rule = (obj["kind"], obj.get("apiVersion")) == (kind.kind, kind.api_version)
    return with_selector(obj) if is_old_rule else obj
