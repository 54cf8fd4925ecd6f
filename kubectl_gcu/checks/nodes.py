"""What nodes report by events and by the status of pods: agents, kubelets, container runtimes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from controller.cache import pods
from controller.cache.keys import full_name
from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object, reserved_for, results
from dra_driver.model.names import DRIVER
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import FAILED_PREPARE, Installation
from kubectl_gcu.cluster.pod_events import event_time
from kubectl_gcu.cluster.pod_status import scheduled_condition, waiting_containers
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
NOT_PREPARED: Final = Check(
    "not-prepared",
    "a claim holds its devices, and its pod has not started for more than three minutes. The node "
    "refuses the claim, or fails to prepare it",
)
CDI_FAILED: Final = Check(
    "cdi-failed",
    "a container with a GCU does not start, or start again: its runtime finds no CDI device",
)

_OF_SOCKET: Final = f"DRA driver {DRIVER} is not registered"
_LONG: Final = timedelta(minutes=3)  # kubelets try again after 60 to 90 s

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
        where = f"pod {full_name(pod)} on node {node}"
        if is_pending and _OF_SOCKET in events.get(uid, ""):
            yield NOT_REGISTERED.finding(
                where,
                "the kubelet does not know the driver's socket, so no claim is prepared",
                f"See whether the agent of node {node} is ready, and whether kubeletRootDir is the "
                "kubelet's --root-dir.",
            )
        for container in waiting_containers(pod):
            if container.lacks_cdi_device:
                remedy = SWITCH_CDI_ON if is_pending else LOST_CDI_FILE
                yield CDI_FAILED.finding(
                    where,
                    f"its container runtime finds no CDI device ({container.message})",
                    f"{remedy[0].upper()}{remedy[1:]}.",
                )


def not_prepared(found: Installation, now: datetime) -> Iterator[Finding]:
    """Claims of pods that were bound and do not start, by the kubelet's events. Nothing takes such
    an allocation back: the pod is bound."""
    events = _failed_prepares(found)
    for pod in found.state.pods:
        note = events.get(pod["metadata"]["uid"], "")
        if not note or _OF_SOCKET in note or not _waits_for_long(pod, now):
            continue
        held = [claim for claim in found.state.claims if _is_held_by(claim, pod)]
        # One that the driver refuses is named; others of the pod hold devices as well.
        for claim in [each for each in held if f"claim {full_name(each)}," in note] or held:
            yield NOT_PREPARED.finding(
                f"claim {full_name(claim)}",
                f"it holds its devices, and pod {full_name(pod)} on node {pods.node_name(pod)} "
                f"does not start: {note.rstrip('.')}",
                "If the next tries fail, too, delete the pod, correct what the message names, and "
                "create it again (docs/user/trouble.md#a-container-does-not-start).",
            )


def _is_held_by(claim: Object, pod: Object) -> bool:
    uid = pod["metadata"]["uid"]
    return bool(results(claim)) and any(each["uid"] == uid for each in reserved_for(claim))


def _waits_for_long(pod: Object, now: datetime) -> bool:
    """Whether the pod was bound that long ago and runs no container."""
    bound = str(scheduled_condition(pod).get("lastTransitionTime") or "")
    is_pending = (pod.get("status") or {}).get("phase") == "Pending"
    return bool(bound) and is_pending and now - datetime.fromisoformat(bound) > _LONG


def _failed_prepares(found: Installation) -> Mapping[str, str]:
    """The newest note for each pod, by UID."""
    return {
        str((event.get("regarding") or {}).get("uid")): str(event.get("note", ""))
        for event in sorted(found.events, key=event_time)
        if event.get("reason") == FAILED_PREPARE
    }
