"""In which step of its start a pod with GCUs is, by the objects that the API server has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.cache import pods
from dra_driver.asks.limits import COUNTED, limit_names
from dra_driver.asks.templates import devices_named
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.model.names import DRIVER
from kubectl_gcu.cluster.pod_events import NOT_ALLOCATED
from kubectl_gcu.cluster.pod_status import scheduled_condition, waiting_containers
from kubectl_gcu.scheduling.unbound import UnboundReason, why_unbound

_RELEASED = "GcuAllocationReleased"
_TAKEN_BACK = "the controller took its devices back, because it was not bound"
# The controller's about pods that wait for what never comes by itself; the notes have the remedies.
_FOR_PERSON = {"GcuLimitNotServed", "GcuClaimTooOld"}
_NO_REASON = "no event says why; one comes within seconds"
# Kubernetes 1.37.1, pkg/controller/resourceclaim.
MAKES_CLAIMS = "kube-controller-manager"
_TEMPLATE_GONE = "not found"
_COMBINED = "(combined from similar events): "
# Reasons of dra_driver/node/claims/device_status.py.
_OF_DEVICE = {
    "PrepareFailed": "docs/user/health.md#when-a-device-cannot-be-prepared",
    "CardUnhealthy": "docs/user/health.md#what-to-do-with-an-unhealthy-card",
    "CardLost": "docs/user/health.md#what-to-do-with-an-unhealthy-card",
}
SWITCH_CDI_ON = "switch CDI on in the runtime, and let cdiDir be a folder that it reads"
LOST_CDI_FILE = (  # of a container that started before, so its runtime reads CDI files
    "delete the pod: the CDI file of its claim is gone "
    "(docs/user/health.md#when-the-agents-records-are-lost)"
)
# Kubernetes 1.36.3, apiserver/pkg/admission/plugin/resourcequota/controller.go.
_EXCEEDED = re.compile(r"exceeded quota: ([^,\s]+)")
_UNHEALTHY = (
    "the pod keeps the card; delete it to have the next one get another card "
    "(docs/user/health.md#what-to-do-with-an-unhealthy-card)"
)
_LEFT_ALONE = (
    "Limits of this pod were left alone (docs/user/beside-other-plugins.md); if that scheduler is "
    "gone, create the pod again"
)


@dataclass(frozen=True, slots=True)
class Step:
    """`who` has to act next, empty where nobody has; `text` says what is missing. `since` is when
    the step began, as far as the API server knows (RFC 3339). `waits_for_devices` is whether the
    allocator decides next. `remedy` is what a person can do, where it is known."""

    who: str
    text: str
    since: str = ""
    waits_for_devices: bool = False
    remedy: str = ""


def step_of(
    pod: Object,
    claims: Mapping[str, Object | None],
    events: Sequence[Object],
    *,
    serves_claims: bool,
    unbound: UnboundReason | None = None,
) -> Step:
    """`claims` are the pod's by their names in the pod, None where there is no such claim (yet);
    `events` are about the pod and its claims, the newest last. `serves_claims` is whether the
    driver serves claims in this cluster: then it has no scheduler extender. `unbound` is why the
    pod is not bound, where more is known of that than the pod says."""
    created = str(pod["metadata"].get("creationTimestamp", ""))
    if step := _ending(pod):
        return step
    if pods.node_name(pod) and (pod.get("status") or {}).get("phase") == "Running":
        return _running(pod, pods.node_name(pod), claims)
    # Also of a pod that was bound to its node before its claims were allocated.
    if step := _before_allocation(pod, claims, events, created):
        return step
    if pods.node_name(pod):
        return _on_node(pod, claims, events)
    if note := _newest(events, _FOR_PERSON):
        return Step("the pod's author or an administrator", note, created)
    return _unbound(pod, unbound or why_unbound(pod), created, serves_claims=serves_claims)


def _ending(pod: Object) -> Step | None:
    if pods.is_done(pod):
        return Step("", f"it has ended ({pod['status']['phase']})")
    if pods.is_deleting(pod):
        who = "the kubelet" if pods.node_name(pod) else "the API server"
        return Step(who, "it is being deleted", str(pod["metadata"]["deletionTimestamp"]))
    return None


def _before_allocation(
    pod: Object, claims: Mapping[str, Object | None], events: Sequence[Object], created: str
) -> Step | None:
    if pods.is_held_by_others(pod):
        reason = why_unbound(pod)
        return Step(reason.who, reason.why, created)
    absent = sorted(name for name, claim in claims.items() if claim is None)
    if absent:
        return _without_claim(pod, absent, events, created)
    unallocated = [each for each in claims.values() if each and allocation(each) is None]
    if unallocated:
        why = _unallocated(pod, events)
        return Step("the allocator", why, created, waits_for_devices=True)
    return None


def _unallocated(pod: Object, events: Sequence[Object]) -> str:
    if released(events):
        return _TAKEN_BACK
    # With allocator: scheduler it says so itself, and the controller nothing.
    condition = scheduled_condition(pod)
    refused = f"kube-scheduler: {condition['message']}" if condition.get("message") else ""
    return why_not_allocated(events) or refused or _NO_REASON


def why_not_allocated(events: Sequence[Object]) -> str:
    """What the controller said last; empty if it said nothing."""
    return _newest(events, {NOT_ALLOCATED})


def released(events: Sequence[Object]) -> Object | None:
    """The controller's event that it took devices back, if it is its last about allocation; the
    newest of `events` is the last."""
    last = [each for each in events if each.get("reason") in {NOT_ALLOCATED, _RELEASED}][-1:]
    return next((each for each in last if each["reason"] == _RELEASED), None)


def _without_claim(pod: Object, absent: list[str], events: Iterable[Object], created: str) -> Step:
    templates = {
        each["name"]: each.get("resourceClaimTemplateName")
        for each in pod["spec"].get("resourceClaims") or ()
    }
    template = templates.get(absent[0])
    text = f"claim {absent[0]} of the pod does not exist"
    if template:
        text += f"; it is made from the ResourceClaimTemplate {template}"
    note = _newest(events, {"FailedResourceClaimCreation", "GcuTemplateMissing"})
    if quota := _EXCEEDED.search(note):
        remedy = (
            f"end a pod whose claims count in the ResourceQuota {quota[1]}, or ask the "
            "administrator for a larger one (docs/user/quota.md#quotas)"
        )
        who = "whoever sets the namespace's quotas, or has claims in it"
        return Step(who, f"{text}: {note}", created, remedy=remedy)
    who = MAKES_CLAIMS if template else "whoever creates the claim"
    if template and devices_named(template) and _TEMPLATE_GONE in note:
        who = "the controller, which makes the template"
    return Step(who, f"{text}: {note}" if note else text, created)


def _unbound(pod: Object, reason: UnboundReason, created: str, *, serves_claims: bool) -> Step:
    since = str(scheduled_condition(pod).get("lastTransitionTime") or created)
    who, why, remedy = reason.who, reason.why, reason.remedy
    limits = sorted(limit_names(pod))
    if not limits or pods.has_our_gate(pod):
        return Step(who, why, since, remedy=remedy)
    why = f"limits {', '.join(limits)}: {why}"
    if not serves_claims and limit_names(pod, COUNTED.__contains__):
        return Step("kube-scheduler, which asks the driver's scheduler extender", why, since)
    if serves_claims and (name := pods.scheduler_name(pod)) != pods.DEFAULT_SCHEDULER:
        who = f"the scheduler {name}, which is not this driver's"
        return Step(who, f"{why.rstrip('.')}. {_LEFT_ALONE}", since)
    return Step(who, why, since, remedy=remedy)


def _on_node(pod: Object, claims: Mapping[str, Object | None], events: Iterable[Object]) -> Step:
    status = pod.get("status") or {}
    bound = str(scheduled_condition(pod).get("lastTransitionTime") or "")
    if status.get("phase") == "Failed" or status.get("reason"):
        return Step("the kubelet", f"{status.get('reason')}: {status.get('message', '')}", bound)
    unprepared = [each for each in claims.values() if each and not _is_prepared(each)]
    if unprepared:
        failed = next(filter(_not_ready, unprepared), unprepared[0])
        return _unprepared(pod, failed, events, bound)
    text = f"it starts the containers ({_waiting(pod) or 'none yet'})"
    no_cdi = any(each.lacks_cdi_device for each in waiting_containers(pod))
    return Step("the kubelet", text, bound, remedy=SWITCH_CDI_ON if no_cdi else "")


def _unprepared(pod: Object, claim: Object, events: Iterable[Object], since: str) -> Step:
    condition = _not_ready(claim)
    why = _newest(events, {"FailedPrepareDynamicResources"}) or str(condition.get("message", ""))
    text = f"claim {claim['metadata']['name']} is not prepared yet{': ' if why else ''}{why}"
    remedy = ""
    if page := _OF_DEVICE.get(str(condition.get("reason"))):
        owners = pod["metadata"].get("ownerReferences") or ()
        owner = next((str(each["kind"]) for each in owners if each.get("controller")), "")
        again = f"its {owner} makes another one" if owner else "create it again"
        remedy = (
            f"delete the pod, and {again}: the device takes no new claim for now, so that one gets "
            f"another ({page})"
        )
    elif why:
        remedy = (
            "the kubelet tries again every 60 to 90 s; "
            "docs/user/trouble.md#a-container-does-not-start says what the message means"
        )
    return Step(f"the agent of node {pods.node_name(pod)}", text, since, remedy=remedy)


def _running(pod: Object, node: str, claims: Mapping[str, Object | None]) -> Step:
    """A pod stays Running while one of its containers does not start again, and on a card that is
    unhealthy."""
    since = str((pod.get("status") or {}).get("startTime", ""))
    waiting = list(waiting_containers(pod))
    if not any(each.is_error for each in waiting):
        messages = [_not_ready(each).get("message", "") for each in claims.values() if each]
        problems = "; ".join(filter(None, messages))
        if problems:
            text = f"it runs on node {node}, but {problems}"
            return Step("whoever looks after the node", text, since, remedy=_UNHEALTHY)
        return Step("", f"it runs on node {node}", since)
    text = f"it runs on node {node}, but a container of it does not: {_waiting(pod)}"
    lost = any(each.lacks_cdi_device for each in waiting)
    return Step("the kubelet", text, since, remedy=LOST_CDI_FILE if lost else "")


def _waiting(pod: Object) -> str:
    return ", ".join(map(str, waiting_containers(pod)))


def _is_prepared(claim: Object) -> bool:
    ready = [each["status"] == "True" for each in _ready(claim)]
    return not results(claim) or (bool(ready) and all(ready))


def _not_ready(claim: Object) -> Mapping[str, Any]:
    """The first condition of this driver's devices that is not true; empty if there is none."""
    return next((each for each in _ready(claim) if each["status"] != "True"), {})


def _ready(claim: Object) -> Iterator[Mapping[str, Any]]:
    """The condition Ready of each of this driver's devices; other drivers have conditions too."""
    for device in (claim.get("status") or {}).get("devices") or ():
        if device["driver"] == DRIVER:
            yield from (it for it in device.get("conditions") or () if it["type"] == "Ready")


def has_gcus(pod: Object, claims: Mapping[str, Object | None]) -> bool:
    """Whether the pod names any claim, or has a limit for GCUs."""
    return bool(claims) or bool(limit_names(pod)) or pods.has_our_gate(pod)


def _newest(events: Iterable[Object], reasons: set[str]) -> str:
    found = [each for each in events if each.get("reason") in reasons]
    return note_of(found[-1]) if found else ""


def note_of(event: Object) -> str:
    """Without what client-go puts before an event that stands for several
    (tools/record/events_cache.go)."""
    return str(event.get("note", "")).removeprefix(_COMBINED)
