"""What nodes report by events and by the status of pods: agents, kubelets, container runtimes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from controller.cache import pods
from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.names import DRIVER
from kubectl_gcu.checks.finding import Check, Finding, named
from kubectl_gcu.checks.installation import FAILED_PREPARE, Installation
from kubectl_gcu.cluster.pod_events import event_time
from kubectl_gcu.cluster.pod_status import waiting_containers
from kubectl_gcu.scheduling.steps import (
    LOST_CDI_FILE,
    SWITCH_CDI_ON,
)

NODE_REPORT: Final = Check(
    "node-report",
    "an agent reported a damaged journal or a card that it cannot publish, within the last hour",
)
NOT_REGISTERED: Final = Check(
    "not-registered", "a pod waits because its kubelet does not know the driver's socket"
)
CDI_FAILED: Final = Check(
    "cdi-failed",
    "a container with a GCU does not start, or start again: its runtime finds no CDI device",
)

# Agents' events that no later one takes back: dra_driver/agent/events.py.
_REPORTED: Final = {"GcuJournalDamaged", "GcuCardUnusable"}


def reports(found: Installation) -> Iterator[Finding]:
    """The newest event for each node and reason. API servers keep events for an hour."""
    newest: dict[tuple[str, str], Object] = {}
    for event in sorted(found.events, key=event_time):
        regarding = event.get("regarding") or {}
        if event.get("reason") in _REPORTED and regarding.get("kind") == "Node":
            newest[str(regarding.get("name")), str(event["reason"])] = event
    for (node, reason), event in sorted(newest.items()):
        yield NODE_REPORT.finding(
            f"node {node}",
            f"{reason}: {event.get('note', '')}".rstrip("."),
            "docs/user/health.md says what it means and what to do.",
        )


def starting_pods(found: Installation) -> Iterator[Finding]:
    """Pods with GCUs that were bound, and one of whose containers does not start, or start
    again."""
    events = _failed_prepares(found)
    users = {
        each["uid"]
        for claim in found.state.claims
        if results(claim)
        for each in (claim.get("status") or {}).get("reservedFor") or ()
    }
    for pod in found.state.pods:
        node = pod["spec"].get("nodeName")
        uid = pod["metadata"]["uid"]
        if not node or pods.is_done(pod) or not (uid in users or limit_names(pod)):
            continue
        is_pending = (pod.get("status") or {}).get("phase") == "Pending"
        where = f"pod {named(pod)} on node {node}"
        if is_pending and f"DRA driver {DRIVER} is not registered" in events.get(uid, ""):
            yield NOT_REGISTERED.finding(
                where,
                "the kubelet does not know the driver's socket, so no claim is prepared",
                f"See whether the agent of node {node} is ready, and whether kubeletRootDir is the "
                "kubelet's --root-dir.",
            )
        for each in waiting_containers(pod):
            if each.lacks_cdi_device:
                remedy = SWITCH_CDI_ON if is_pending else LOST_CDI_FILE
                yield CDI_FAILED.finding(
                    where,
                    f"its container runtime finds no CDI device ({each.message})",
                    f"{remedy[0].upper()}{remedy[1:]}.",
                )


def _failed_prepares(found: Installation) -> Mapping[str, str]:
    """The newest note for each pod, by UID."""
    return {
        str((event.get("regarding") or {}).get("uid")): str(event.get("note", ""))
        for event in sorted(found.events, key=event_time)
        if event.get("reason") == FAILED_PREPARE
    }
