"""The driver's scheduling gate on a pod: kube-scheduler ignores the pod until it is gone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_driver.kube.api import NOTHING
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE


def has_gate(pod: Mapping[str, Any]) -> bool:
    """Whether the pod waits behind the gate."""
    gates = pod["spec"].get("schedulingGates") or ()
    return any(gate["name"] == SCHEDULING_GATE for gate in gates)


def gate_lifted(pod: Mapping[str, Any], spec: Mapping[str, Any] = NOTHING) -> Object:
    """A strategic merge patch that removes the gate from this very pod, and merges `spec`. For
    another pod of its name the server answers Invalid, as a UID is immutable."""
    removed = {"schedulingGates": [{"$patch": "delete", "name": SCHEDULING_GATE}]}
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "spec": {**spec, **removed}}
