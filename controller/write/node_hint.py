"""How the controller proposes a node to kube-scheduler. Pure.

The name of a node in ``status.nominatedNodeName`` is tried first, and taken without scoring if all
filters accept it (kube-scheduler 1.37.1, `findNodesThatFitPod`; KEP-1923). Upstream does not
promise that others than kube-scheduler may write it (KEP-5278 since 1.35). A preferred node
affinity is promised, and only one score among several. Neither can bind a pod where it does not
fit.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from dra_driver.model.claims.claim import Object

_HEAVIEST: Final = 100  # core/v1, PreferredSchedulingTerm


class NodeHint(Enum):
    """`status` and `spec` are merged into the pod: the status first, the spec with the patch that
    removes the gate."""

    NAME = "name"
    AFFINITY = "affinity"

    def status(self, node: str) -> Object:
        """Empty where the status is not written."""
        return {"nominatedNodeName": node} if self is NodeHint.NAME else {}

    def spec(self, pod: Object, node: str) -> Object:
        """`pod` is the pod with all its fields: its own preferences stay."""
        if self is NodeHint.NAME:
            return {}
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        preferred: list[Any] = [
            *(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()),
            {"weight": _HEAVIEST, "preference": term},
        ]
        merged = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        return {"affinity": {"nodeAffinity": merged}}
