"""Pods that the driver's scheduling gate holds back although nobody decides about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from controller.cache import pods
from controller.cache.keys import full_name
from dra_driver.kube.resources import POD_GROUPS
from dra_driver.model.names import SCHEDULING_GATE
from kubectl_gcu.checks.finding import Check, Finding
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.checks.programs import has_leader
from kubectl_gcu.cluster.pod_events import NOT_ALLOCATED
from kubectl_gcu.words import first_of

GATE_UNDECIDED: Final = Check(
    "gate-undecided",
    "kube-scheduler allocates, and the scheduling gate has held a pod back for more than two "
    "minutes. The pod does not wait for room: no controller leads, or it decides nothing",
)
_LONG: Final = 120.0  # seconds; a leader decides within fifty, and a new one leads within twenty
_MOST_NAMED: Final = 3

_DELETION: Final = {"$patch": "delete", "name": SCHEDULING_GATE}
_PATCH: Final = json.dumps({"spec": {"schedulingGates": [_DELETION]}}, separators=(",", ":"))
LIFT_ALL: Final = (
    "kubectl get pods -A -o jsonpath='{range .items[?(@.spec.schedulingGates)]}"
    '{.metadata.namespace}{" "}{.metadata.name}{"\\n"}{end}\' | '
    f"xargs -r -L 1 kubectl patch pod --type strategic -p '{_PATCH}' -n"
)
"""A command for a shell. Other gates of the pods stay; a pod without the gate is not changed."""


def undecided(found: Installation, now: datetime) -> Iterator[Finding]:
    """One finding for all pods. An event of the controller on each pod that waits, or on its
    PodGroup, says why."""
    if not found.for_scheduler:
        return
    late = [
        pod
        for pod in found.state.pods
        if pods.has_our_gate(pod) and not pods.is_aside(pod) and pods.age(pod, now) > _LONG
    ]
    why = "no controller leads, so nobody lifts it"
    if has_leader(found, now):
        why = "the controller has neither lifted it nor said why they wait"
        about = [
            event.get("regarding") or {}
            for event in found.events
            if event.get("reason") == NOT_ALLOCATED
        ]
        waiting = {each.get("uid") for each in about}
        groups = {
            f"{each.get('namespace')}/{each.get('name')}"
            for each in about
            if each.get("kind") == POD_GROUPS.kind
        }
        # Of a PodGroup that does not exist one pod has the event.
        members = (pods.group_name(pod) for pod in late if pod["metadata"]["uid"] in waiting)
        groups |= set(filter(None, members))
        late = [
            pod
            for pod in late
            if pod["metadata"]["uid"] not in waiting and pods.group_name(pod) not in groups
        ]
    if late:
        yield GATE_UNDECIDED.finding(
            f"pods {first_of(sorted(map(full_name, late)), _MOST_NAMED)}",
            f"the scheduling gate {SCHEDULING_GATE} holds them back, and {why}",
            "See the controllers' logs. To let kube-scheduler choose their nodes, lift the gate: "
            f"{LIFT_ALL}",
        )
