"""A cluster's state that was saved before: the output of ``kubectl get -o json`` (or yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from controller.allocator.taints import with_selector
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from kubectl_gcu.cluster.manifest import flat, load_documents

_READ = {
    each.kind: each
    for each in (
        RESOURCE_SLICES,
        DEVICE_CLASSES,
        NODES,
        RESOURCE_CLAIMS,
        PODS,
        RESOURCE_CLAIM_TEMPLATES,
        DEVICE_TAINT_RULES,
    )
}
_NEEDED = (RESOURCE_SLICES, DEVICE_CLASSES, NODES)


class SavedState:
    """The objects of the file."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidValue for a file that cannot be read, or lacks slices, classes or nodes."""
        found: dict[Resource, list[Object]] = {each: [] for each in _READ.values()}
        for each in flat(load_documents(str(path))):
            if resource := _READ.get(each["kind"]):
                if resource is RESOURCE_SLICES and each.get("apiVersion") != resource.api_version:
                    raise InvalidValue(f"{path} has ResourceSlices of {each.get('apiVersion')}")
                found[resource].append(_as_v1(each))
        if missing := [each.plural for each in _NEEDED if not found[each]]:
            always = (each for each in _READ.values() if each is not DEVICE_TAINT_RULES)
            raise InvalidValue(
                f"{path} has no {', '.join(missing)}",
                remedy="save them with kubectl get "
                f"{','.join(each.plural for each in always)} -A -o json",
            )
        self.objects: Mapping[Resource, tuple[Object, ...]] = {
            resource: tuple(each) for resource, each in found.items()
        }

    def template(self, namespace: str, name: str) -> Object:
        """The claim template; raises NotFound."""
        for each in self.objects[RESOURCE_CLAIM_TEMPLATES]:
            if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name):
                return each
        raise NotFound(f"there is no ResourceClaimTemplate {namespace}/{name}", status=404)


def _as_v1(each: Object) -> Object:
    kind = DEVICE_TAINT_RULES_V1BETA2
    is_old_rule = (each["kind"], each.get("apiVersion")) == (kind.kind, kind.api_version)
    return with_selector(each) if is_old_rule else each
