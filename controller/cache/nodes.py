"""May a pod run on a node, as far as the pod and the node themselves say? Pure.

cpu and memory only rank nodes (`controller.cache.node_resources`). Ports are left to
kube-scheduler: preemption may free them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from controller.allocator.node_selector import Node, labels_of, selector_matches

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PREVENTING = frozenset({"NoSchedule", "NoExecute"})


def filter_reason(pod: Mapping[str, Any], node: Node) -> str | None:
    """Why the pod cannot run on the node, in a few words that many nodes share; None if it can."""
    spec = pod["spec"]
    if not _is_ready(node):
        return "not ready"
    if not _labels_match(spec.get("nodeSelector") or {}, node):
        return "excluded by the pod's nodeSelector"
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is not None and not selector_matches(required, node):
        return "excluded by the pod's node affinity"
    taint = _untolerated(spec.get("tolerations") or (), node)
    return f"tainted {taint}" if taint else None


def demand(pod: Mapping[str, Any]) -> list[Any]:
    """All that `filter_reason` reads of the pod."""
    spec = pod["spec"]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    return [spec.get("nodeSelector"), affinity, spec.get("tolerations")]


def digest(demand: object) -> bytes:
    """Equal for equal demands on nodes, as JSON has them. Their text may be of megabytes."""
    return sha256(json.dumps(demand, sort_keys=True).encode()).digest()


def relevant(node: Node) -> tuple[Any, ...]:
    """All that `filter_reason` and `selector_matches` read: a heartbeat changes nothing of it."""
    spec = node.get("spec") or {}
    return (
        node["metadata"].get("labels"),
        spec.get("taints"),
        spec.get("unschedulable"),
        _is_ready(node),
    )


def check(node: Node) -> None:
    """Raises where `filter_reason` could not read the node: it would fail for every pod."""
    relevant(node)
    labels_of(node).items()
    for taint in (node.get("spec") or {}).get("taints") or ():
        assert {"key", "effect"} <= taint.keys()


def _is_ready(node: Node) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _labels_match(wanted: Mapping[str, str], node: Node) -> bool:
    labels = labels_of(node)
    return all(labels.get(key) == value for key, value in wanted.items())


def _untolerated(tolerations: Iterable[Mapping[str, Any]], node: Node) -> str | None:
    spec = node.get("spec") or {}
    taints = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints.append({"key": _UNSCHEDULABLE, "effect": "NoSchedule"})
    given = tuple(tolerations)
    for taint in taints:
        if taint["effect"] in _PREVENTING and not any(_tolerates(each, taint) for each in given):
            return str(taint["key"])
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
