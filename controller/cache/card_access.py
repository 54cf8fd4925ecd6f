"""How a pod gets cards from the vendor's container runtime or by their device nodes, as far as its
spec shows it. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object, claim_names
from dra_driver.model.names import ENV_VISIBLE_DEVICES, RESOURCE_COUNT, VENDOR_PREFIX

_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_DEVICE_NODES: Final = "/dev/gcu"
_NO_CARD: Final = frozenset({"", "none", "void"})  # values of the variable


def direct_access(pod: Object, runtime_classes: Collection[str]) -> list[str]:
    """In words, each way by which the pod has cards; empty for a pod with a claim, whichever, or
    with limits ``enflame.com/…``. `runtime_classes` are those of the vendor's runtime."""
    if claim_names(pod) or _is_served(pod):
        return []
    return sorted({*_by_runtime_class(pod, runtime_classes), *_by_variable(pod), *_by_volume(pod)})


def prune(spec: Object) -> None:
    """Remove from a pod's spec the variables and hostPath volumes that `direct_access` does not
    read."""
    for container in _containers(spec):
        if "env" in container:
            read = [variable for variable in container.pop("env") or () if _is_read(variable)]
            if read:
                container["env"] = read
    if "ephemeralContainers" in spec:
        ephemeral = spec.pop("ephemeralContainers") or ()
        if kept := [container for container in ephemeral if "env" in container]:
            spec["ephemeralContainers"] = kept
    for volume in spec.get("volumes") or ():
        if "hostPath" in volume and not _is_device_node(volume):
            del volume["hostPath"]


def device_nodes(spec: Object) -> list[Object]:
    """The volumes that are device nodes of cards."""
    return [volume for volume in spec.get("volumes") or () if _is_device_node(volume)]


def _is_served(pod: Object) -> bool:
    """Whether limits give it cards: by a claim that kube-scheduler made, or by a device plugin."""
    if (pod.get("status") or {}).get("extendedResourceClaimStatus"):
        return True
    return bool(limit_names(pod, _gives_cards))


def _gives_cards(limit: str) -> bool:
    return limit.startswith(VENDOR_PREFIX) and limit != RESOURCE_COUNT


def _by_runtime_class(pod: Object, runtime_classes: Collection[str]) -> Iterator[str]:
    if (name := pod["spec"].get("runtimeClassName")) in runtime_classes:
        yield f"the RuntimeClass {name}"


def _by_variable(pod: Object) -> Iterator[str]:
    for container in _containers(pod["spec"]):
        for variable in filter(_is_read, container.get("env") or ()):
            if "valueFrom" in variable:
                yield f"{ENV_VISIBLE_DEVICES} from elsewhere"
            elif variable.get("value", "") not in _NO_CARD:
                yield f"{ENV_VISIBLE_DEVICES}={variable['value']}"


def _by_volume(pod: Object) -> Iterator[str]:
    for volume in device_nodes(pod["spec"]):
        yield f"the hostPath {volume['hostPath']['path']}"


def _containers(spec: Mapping[str, Any]) -> Iterator[Object]:
    for kind in _KINDS:
        yield from spec.get(kind) or ()


def _is_read(variable: Mapping[str, Any]) -> bool:
    return variable.get("name") == ENV_VISIBLE_DEVICES


def _is_device_node(volume: Mapping[str, Any]) -> bool:
    """Whether the volume is a card's device node, also if written as ``//dev/./gcu0``, which the
    kubelet takes."""
    path = str((volume.get("hostPath") or {}).get("path") or "")
    return posixpath.normpath(f"/{path.lstrip('/')}").startswith(_DEVICE_NODES)
