"""Decodes what the controller watches: the fields that it reads, and equal parts once.

An object that is written back must have all its fields. So a claim that no pod has reserved is
decoded whole. One in use is read again before it is written (`controller.write.writer`). No other
object is written back; a pod is patched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from controller.allocator.taints import with_selector
from controller.cache import card_access, host_ports, pods
from controller.cache.cache import OTHER_SLICES
from controller.cache.interner import Interner
from controller.cache.packed import Fields, PackedDevices, PackedObject
from controller.cache.pod_requests import is_read
from controller.informers import models
from dra_driver.kube.decode import WHOLE, Decoder, Text, Typed
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, ReadOnlyObject, is_in_use

# What many objects have in common. Volumes are not: `kube-api-access-x7k2p` is of one pod alone.
_ALIKE_PODS: Final[Fields] = {
    "metadata": ("labels", "namespace", "ownerReferences"),
    "spec": (
        "affinity",
        "containers",
        "initContainers",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "resources",
        "schedulerName",
        "schedulingGates",
        "schedulingGroup",
        "tolerations",
        "topologySpreadConstraints",
    ),
    "status": ("conditions", "containerStatuses", "initContainerStatuses", "phase"),
}
# Pods of all workloads have these in common: they are counted, and forgotten (`AssignedPod`).
_ALIKE_OTHERS: Final[Fields] = {**_ALIKE_PODS, "metadata": ("namespace",)}
_ALIKE_CLAIMS: Final[Fields] = {
    "metadata": ("namespace", "managedFields"),
    "spec": ("devices",),
}
_ALIKE_NODES: Final[Fields] = {
    "spec": ("taints",),
    "status": ("allocatable", "conditions", "nodeInfo"),
}
_OTHER_META: Final = ("namespace", "name", "uid", "resourceVersion", "deletionTimestamp", "labels")
_OTHER_SPEC: Final = (
    "affinity",
    "containers",
    "ephemeralContainers",
    "initContainers",
    "nodeName",
    "overhead",
    "priority",
    "resources",
    "runtimeClassName",
)


def decoders() -> Mapping[Resource, Decoder]:
    """One for each kind that is watched, and for each older version of one that says the same in
    another way. Nobody may alter what they return: several objects share parts of it."""
    interner = Interner()
    return {
        PODS: Typed(models.POD, partial(_pod, interner)),
        RESOURCE_CLAIMS: ClaimDecoder(interner),
        NAMESPACES: Typed(models.NAMESPACE),
        NODES: Typed(models.NODE, partial(_node, interner)),
        RESOURCE_SLICES: Typed(models.SLICE, _slice),
        OTHER_SLICES: Typed(models.SLICE, _slice),
        DEVICE_CLASSES: Typed(models.DEVICE_CLASS),
        DEVICE_TAINT_RULES: Typed(models.TAINT_RULE),
        DEVICE_TAINT_RULES_V1BETA2: Typed(models.TAINT_RULE, with_selector),
        RESOURCE_CLAIM_TEMPLATES: Typed(models.CLAIM_TEMPLATE),
        POD_GROUPS: Typed(models.POD_GROUP),
    }


class ClaimDecoder:
    """Decodes the fields that are read of a claim in use, and all fields of any other claim."""

    def __init__(self, interner: Interner) -> None:
        self._in_use = Typed(models.CLAIM_IN_USE, partial(_claim, interner))

    def decode(self, text: Text) -> ReadOnlyObject:
        claim: ReadOnlyObject = self._in_use.decode(text)
        return claim if isinstance(claim, PackedObject) else WHOLE.decode(text)


def _pod(interner: Interner, pod: Object) -> ReadOnlyObject:
    card_access.prune(pod["spec"])
    host_ports.prune(pod["spec"])
    alike = _ALIKE_PODS
    if not pods.concerns_us(pod):
        pod, alike = _other(pod), _ALIKE_OTHERS
    if pods.node_name(pod):
        return PackedObject(interner, alike, pod)
    return _shared(interner, alike, pod)


def _other(pod: Object) -> Object:
    """A pod without claims: what kube-scheduler's filters read of it where it is (`AssignedPod`),
    and how it may have cards all the same (`direct_access`)."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if not (pods.node_name(pod) or pods.nominated_node(pod)):
        spec = {}
    nodes = card_access.device_nodes(spec)
    if "conditions" in status:
        status["conditions"] = [each for each in status["conditions"] or () if is_read(each)]
    return pod | {
        "metadata": {field: metadata[field] for field in _OTHER_META if field in metadata},
        "spec": {field: spec[field] for field in _OTHER_SPEC if field in spec}
        | ({"volumes": nodes} if nodes else {}),
        "status": status,
    }


def _node(interner: Interner, node: Object) -> Object:
    """With the resources that it has some of, and whether an agent describes its cards."""
    status, annotations = node.get("status") or {}, node["metadata"].get("annotations")
    if allocatable := status.get("allocatable"):
        status["allocatable"] = {
            name: amount for name, amount in allocatable.items() if amount != "0"
        }
    if annotations:
        node["metadata"]["annotations"] = dict.fromkeys(annotations, "")
    return _shared(interner, _ALIKE_NODES, node)


def _claim(interner: Interner, claim: Object) -> ReadOnlyObject:
    return PackedObject(interner, _ALIKE_CLAIMS, claim) if is_in_use(claim) else claim


def _slice(resource_slice: Object) -> Object:
    spec = resource_slice.get("spec") or {}
    if "devices" in spec:
        spec["devices"] = PackedDevices(bytes(spec["devices"]))
    return resource_slice


def _shared(interner: Interner, alike: Fields, obj: Object) -> Object:
    """The object, with one dict for equal parts of several objects."""
    for section, fields in alike.items():
        present = obj.get(section) or {}
        for field in fields:
            if field in present:
                present[field] = interner(present[field])
    return obj
