"""What kube-scheduler has against nodes that no allocator of devices decides about. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from kubectl_gcu.cluster.pod_events import event_time

MAKE_ROOM: Final = (
    "ask for less of what kube-scheduler says is missing, or make room for it on a node"
)
_FAILED: Final = "FailedScheduling"
_COUNTED: Final = re.compile(r"(?:^|, )\d+ ")
_NO_CLASS: Final = re.compile(r"request \S+: device class \S+ does not exist")
# Of the plugins DynamicResources, NodeAffinity, TaintToleration and NodeUnschedulable (1.36.3): the
# allocator decides about these by itself.
_OF_ALLOCATOR: Final = (
    "cannot allocate all claims",
    "cannot schedule extended resource claim",
    "resource claim",
    "resourceclaim",
    "node(s) didn't match Pod's node affinity",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    "node(s) had untolerated taint",
    "node(s) were unschedulable",
)


def refusal(condition: Mapping[str, Any], events: Sequence[Object]) -> str:
    """kube-scheduler's last words against nodes, such as ``0/2 nodes are available: 2 Insufficient
    cpu``, with their time where an event has it; empty if it has none. `condition` is the pod's
    PodScheduled; the newest of `events` is the last."""
    for event in reversed(events):
        words = against_nodes(str(event.get("note", ""))) if event.get("reason") == _FAILED else ""
        if words:
            return f"kube-scheduler at {event_time(event)}: {words}"
    words = against_nodes(str(condition.get("message", "")))
    return f"kube-scheduler: {words}" if words else ""


def against_nodes(message: str) -> str:
    """The message without its sentences about preemption; empty if it says nothing against a node
    that the allocator does not decide about."""
    said = message.partition(". ")[0].rstrip(".")
    _, found, reasons = said.partition(" nodes are available: ")
    against = [each for each in _COUNTED.split(reasons) if each]
    return said if found and not all(map(_is_of_allocator, against)) else ""


def _is_of_allocator(reason: str) -> bool:
    return reason.startswith(_OF_ALLOCATOR) or _NO_CLASS.fullmatch(reason) is not None
