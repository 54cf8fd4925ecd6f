"""Decodes what the controller watches: the fields that it reads, and equal parts once.

What is written back must have all its fields: a claim that nobody uses is decoded whole, and who
writes one in use reads it before (`controller.write.claim_writer`). No other object is written
back; a pod is patched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from controller.cache import pods
from controller.cache.node_resources import is_read
from controller.informers import models
from controller.informers.packed_devices import PackedDevices
from dra_driver.kube.decode import WHOLE, Decoder, Text, Typed
from dra_driver.kube.interner import Interner
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
from dra_driver.model.claim import Object, is_in_use

# What many objects have in common.
_POD_META: Final = ("namespace", "ownerReferences")
_POD_SPEC: Final = (
    "affinity",
    "containers",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "overhead",
    "resourceClaims",  # made from templates they are alike
    "schedulingGates",
    "tolerations",
    "volumes",
)
_POD_STATUS: Final = ("conditions", "containerStatuses", "initContainerStatuses", "phase")
# All that counts of a pod which has nothing to do with us: `controller.cache.node_resources`.
_OTHER_META: Final = ("namespace", "name", "uid", "resourceVersion")
_OTHER_SPEC: Final = ("containers", "initContainers", "nodeName", "overhead", "resources")
_RESULT: Final = ("consumedCapacity", "device", "driver", "pool", "request")


def decoders() -> Mapping[Resource, Decoder]:
    """By kind, all kinds that are watched. What they give must never be altered, as parts of it
    belong to several objects."""
    share = Interner()
    return {
        PODS: Typed(models.Pod, partial(_pod, share)),
        RESOURCE_CLAIMS: ClaimDecoder(share),
        NODES: Typed(models.Node, partial(_node, share)),
        RESOURCE_SLICES: Typed(models.Slice, _slice),
        DEVICE_CLASSES: Typed(models.DeviceClass),
        DEVICE_TAINT_RULES: Typed(models.TaintRule),
        RESOURCE_CLAIM_TEMPLATES: Typed(models.ClaimTemplate),
    }


class ClaimDecoder:
    """Decodes a claim in use to the fields that are read, and any other one whole."""

    def __init__(self, share: Interner) -> None:
        self._in_use = Typed(models.ClaimInUse, partial(_claim, share))

    def decode(self, text: Text) -> Object:
        claim = self._in_use.decode(text)
        return claim if is_in_use(claim) else WHOLE.decode(text)

    def convert(self, obj: Object) -> Object:
        return self._in_use.convert(obj) if is_in_use(obj) else obj


def _pod(share: Interner, pod: Object) -> Object:
    spec, status = pod["spec"], pod.get("status") or {}
    if pods.concerns_us(pod):
        _share(share, pod["metadata"], _POD_META)
        _share(share, spec, _POD_SPEC)
        _share(share, status, _POD_STATUS)
        return pod
    metadata, status = _only(pod["metadata"], _OTHER_META), dict(status)
    if status.get("conditions"):
        status["conditions"] = [each for each in status["conditions"] if is_read(each)]
    _share(share, metadata, ("namespace",))
    spec = _only(spec, _OTHER_SPEC) if pods.node_name(pod) or pods.nominated_node(pod) else {}
    _share(share, spec, _OTHER_SPEC)
    return pod | {"metadata": metadata, "spec": spec, "status": share(status)}


def _claim(share: Interner, claim: Object) -> Object:
    if not is_in_use(claim):
        return claim
    _share(share, claim["metadata"], ("namespace", "managedFields"))
    _share(share, claim, ("spec",))
    allocation = claim["status"]["allocation"]
    _share(share, allocation, ("nodeSelector",))
    devices = allocation.get("devices") or {}
    _share(share, devices, ("config",))
    for result in devices.get("results") or ():
        _share(share, result, _RESULT)
    return claim


def _node(share: Interner, node: Object) -> Object:
    _share(share, node.get("spec") or {}, ("taints",))
    _share(share, node.get("status") or {}, ("allocatable", "conditions"))
    return node


def _slice(found: Object) -> Object:
    spec = found.get("spec") or {}
    if "devices" in spec:
        spec["devices"] = PackedDevices(bytes(spec["devices"]))
    return found


def _share(share: Interner, holder: dict[str, Any], fields: tuple[str, ...]) -> None:
    for field in fields:
        if field in holder:
            holder[field] = share(holder[field])


def _only(holder: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {field: holder[field] for field in fields if field in holder}
