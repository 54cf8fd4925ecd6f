"""What the controller keeps of an object: the fields that it reads, and equal parts once.

An object is cut as its page of a list, or its line of a watch, is read. What is written back must
never be cut: a claim that is not in use is kept as the server gave it, and who writes another one
reads it before (`is_whole`). No other object is written back; a pod is patched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dra_driver.kube.api import Keep
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.kube.sharing import Sharing
from dra_driver.model.claim import Object, allocation, reserved_for

_ANY: Final = "*"  # in a path: each field that has no path of its own
_IDENTITY: Final = (
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.deletionTimestamp",
)
_PLACE: Final = ("metadata.namespace",)


@dataclass(frozen=True, slots=True)
class _Part:
    """What is kept of a value: these fields, of each item where it is a list; without fields, all
    of it. What many objects have in common is `shared`."""

    fields: Mapping[str, _Part]
    shared: bool


def _parts(kept: Iterable[str], shared: Collection[str]) -> _Part:
    """Of paths, with dots between the fields; what is shared is kept."""
    tree: dict[str, Any] = {}
    for path in (*kept, *shared):
        found = tree
        for field in path.split("."):
            found = found.setdefault(field, {})
    return _part("", tree, shared)


def _part(path: str, tree: dict[str, Any], shared: Collection[str]) -> _Part:
    fields = {
        name: _part(f"{path}.{name}" if path else name, each, shared) for name, each in tree.items()
    }
    return _Part(fields, path in shared)


_POD: Final = _parts(
    (
        *_IDENTITY,
        "metadata.creationTimestamp",
        "metadata.ownerReferences.controller",
        "metadata.ownerReferences.uid",
        "spec.containers.name",
        "spec.containers.resources.claims",
        "spec.containers.resources.requests",
        "spec.initContainers.name",
        "spec.initContainers.resources.claims",
        "spec.initContainers.resources.requests",
        "spec.initContainers.restartPolicy",
        "spec.priority",
        "spec.resourceClaims.name",
        "spec.resourceClaims.resourceClaimName",
        "spec.resourceClaims.resourceClaimTemplateName",
        "spec.resources.requests",
        "spec.volumes.ephemeral.volumeClaimTemplate.metadata",  # that it is there is enough
        "spec.volumes.name",
        "spec.volumes.persistentVolumeClaim.claimName",
        "status.conditions.message",
        "status.conditions.reason",
        "status.conditions.status",
        "status.conditions.type",
        "status.containerStatuses.allocatedResources",
        "status.containerStatuses.name",
        "status.containerStatuses.resources.requests",
        "status.initContainerStatuses.allocatedResources",
        "status.initContainerStatuses.name",
        "status.initContainerStatuses.resources.requests",
        "status.resourceClaimStatuses",
        "status.resources.requests",
    ),
    (
        *_PLACE,
        "metadata.ownerReferences",
        "spec.affinity.nodeAffinity",
        "spec.containers",
        "spec.initContainers",
        "spec.nodeName",
        "spec.nodeSelector",
        "spec.overhead",
        "spec.resourceClaims",  # made from templates they are alike
        "spec.schedulingGates",
        "spec.tolerations",
        "spec.volumes",
        "status.allocatedResources",
        "status.conditions",
        "status.containerStatuses",
        "status.initContainerStatuses",
        "status.nominatedNodeName",
        "status.phase",
    ),
)
_RESERVED_CLAIM: Final = _parts(
    (
        *_IDENTITY,
        # Who wrote the allocation: controller/reconcile/field_manager.py.
        "metadata.managedFields.fieldsV1.f:status.f:allocation",
        "metadata.managedFields.manager",
        "metadata.managedFields.subresource",
        "metadata.ownerReferences.controller",
        "metadata.ownerReferences.kind",
        "metadata.ownerReferences.uid",
        "spec.devices.requests",
        "status.allocation.devices.results.adminAccess",
        "status.allocation.devices.results.shareID",
        "status.reservedFor.name",
        "status.reservedFor.uid",
    ),
    (
        *_PLACE,
        "metadata.managedFields",
        "spec",
        "status.allocation.devices.results.consumedCapacity",
        "status.allocation.devices.results.device",
        "status.allocation.devices.results.driver",
        "status.allocation.devices.results.pool",
        "status.allocation.devices.results.request",
        "status.allocation.nodeSelector",
    ),
)
_NODE: Final = _parts(
    (
        *_IDENTITY,
        "metadata.labels",
        "spec.unschedulable",
        "status.allocatable.cpu",
        "status.allocatable.memory",
        "status.allocatable.pods",
        "status.conditions.status",
        "status.conditions.type",
    ),
    ("spec.taints", "status.allocatable", "status.conditions"),
)
_SLICE: Final = _parts(
    (*_IDENTITY, "spec.*"),
    ("spec.devices.*", "spec.devices.attributes.*"),
)
_CLASS: Final = _parts((*_IDENTITY, "spec"), ())
_TAINT_RULE: Final = _parts(
    (*_IDENTITY, "spec.deviceSelector", "spec.taint.effect", "spec.taint.key", "spec.taint.value"),
    (),
)
_TEMPLATE: Final = _parts((*_IDENTITY, "metadata.labels"), _PLACE)
_OTHERS: Final = {
    PODS: _POD,
    NODES: _NODE,
    RESOURCE_SLICES: _SLICE,
    DEVICE_CLASSES: _CLASS,
    DEVICE_TAINT_RULES: _TAINT_RULE,
    RESOURCE_CLAIM_TEMPLATES: _TEMPLATE,
}


def is_whole(claim: Object) -> bool:
    """Whether a kept claim is as the server gave it, and so may be written back: as long as no pod
    has reserved an allocation, which is the state of few."""
    return allocation(claim) is None or not reserved_for(claim)


class Kept:
    """One instance for all that is kept. What it gives must never be altered."""

    def __init__(self) -> None:
        self._share = Sharing()

    def of(self, resource: Resource) -> Keep:
        """Gives what is kept of one object of the kind."""
        if resource is RESOURCE_CLAIMS:
            return self._claim
        return partial(self._cut, _OTHERS[resource])

    def _claim(self, claim: Object) -> Object:
        if is_whole(claim):
            return claim
        found: Object = self._cut(_RESERVED_CLAIM, claim)
        return found

    def _cut(self, part: _Part, value: Any) -> Any:
        found = self._fields(part.fields, value) if part.fields else value
        return self._share(found) if part.shared else found

    def _fields(self, fields: Mapping[str, _Part], value: Any) -> Any:
        if isinstance(value, list):
            return [self._fields(fields, each) for each in value]
        if not isinstance(value, dict):
            return value
        if _ANY in fields:
            other = fields[_ANY]
            return {name: self._cut(fields.get(name, other), each) for name, each in value.items()}
        return {
            name: self._cut(each, value[name]) for name, each in fields.items() if name in value
        }
