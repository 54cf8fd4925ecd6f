"""In which step of its start a pod with GCUs is, by the objects that the API server has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.cache import pods
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.names import DRIVER, SCHEDULING_GATE

_NOT_ALLOCATED = "GcuAllocationFailed"
_DEFAULT = "default-scheduler"  # core/v1, the default of spec.schedulerName
_LEFT_ALONE = (
    "Limits of this pod were left alone (docs/user/beside-other-plugins.md); if that scheduler is "
    "gone, create the pod again"
)


@dataclass(frozen=True, slots=True)
class Step:
    """`who` has to act next, empty where nobody has; `text` says what is missing. `since` is when
    the step began, as far as the API server knows (RFC 3339). `waits_for_devices` is whether the
    allocator decides next."""

    who: str
    text: str
    since: str = ""
    waits_for_devices: bool = False


def step_of(
    pod: Object,
    claims: Mapping[str, Object | None],
    events: Iterable[Object],
    *,
    serves_claims: bool,
) -> Step:
    """`claims` are the pod's by their names in the pod, None where there is no such claim (yet);
    `events` are about the pod and its claims, the newest last. `serves_claims` is whether the
    driver serves claims in this cluster: then it has no scheduler extender."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    created = str(metadata.get("creationTimestamp", ""))
    if pods.is_done(pod):
        return Step("", f"it has ended ({status.get('phase')})")
    if pods.is_deleting(pod):
        who = "the kubelet" if pods.node_name(pod) else "the API server"
        return Step(who, "it is being deleted", str(metadata["deletionTimestamp"]))
    if pods.node_name(pod):
        return _on_node(pod, claims, events)
    step = _before_scheduling(pod, claims, events, created)
    return step or _unbound(pod, created, serves_claims=serves_claims)


def _before_scheduling(
    pod: Object, claims: Mapping[str, Object | None], events: Iterable[Object], created: str
) -> Step | None:
    if pods.is_held_by_others(pod):
        gates = ", ".join(sorted(pods.gates(pod) - {SCHEDULING_GATE}))
        return Step("whoever set the scheduling gate", f"it is held back by {gates}", created)
    absent = sorted(name for name, claim in claims.items() if claim is None)
    if absent:
        return _without_claim(pod, absent, events, created)
    unallocated = [each for each in claims.values() if each and allocation(each) is None]
    if unallocated:
        why = _newest(events, {_NOT_ALLOCATED}) or "no event says why; one comes within seconds"
        return Step("the allocator", why, created, waits_for_devices=True)
    return None


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
    who = "kube-controller-manager" if template else "whoever creates the claim"
    return Step(who, f"{text}: {note}" if note else text, created)


def _unbound(pod: Object, created: str, *, serves_claims: bool) -> Step:
    condition = _condition(pod, "PodScheduled")
    reason = str(condition.get("message", "")) or "it has not tried the pod yet"
    limits = sorted(limits_of(pod))
    who = "kube-scheduler"
    if limits:
        reason = f"limits {', '.join(limits)}: {reason}"
        if not serves_claims:
            who = "kube-scheduler, which asks the driver's scheduler extender"
        elif (name := pod["spec"].get("schedulerName") or _DEFAULT) != _DEFAULT:
            who = f"the scheduler {name}, which is not this driver's"
            reason = f"{reason.rstrip('.')}. {_LEFT_ALONE}"
    if pods.has_our_gate(pod):
        who, reason = "the controller", "its claims are allocated; the scheduling gate goes next"
    return Step(who, reason, str(condition.get("lastTransitionTime") or created))


def _on_node(pod: Object, claims: Mapping[str, Object | None], events: Iterable[Object]) -> Step:
    status, node = pod.get("status") or {}, pods.node_name(pod)
    bound = str(_condition(pod, "PodScheduled").get("lastTransitionTime") or "")
    if status.get("phase") == "Running":
        return Step("", f"it runs on node {node}", str(status.get("startTime", "")))
    if status.get("phase") == "Failed" or status.get("reason"):
        return Step("the kubelet", f"{status.get('reason')}: {status.get('message', '')}", bound)
    unprepared = [each for each in claims.values() if each and not _is_prepared(each)]
    if unprepared:
        reason = _newest(events, {"FailedPrepareDynamicResources"}) or _not_ready(unprepared[0])
        name = unprepared[0]["metadata"]["name"]
        who = f"the agent of node {node}"
        return Step(who, f"claim {name} is not prepared yet{': ' if reason else ''}{reason}", bound)
    waiting = ", ".join(f"{name}: {reason}" for name, reason in waiting_containers(pod))
    return Step("the kubelet", f"it starts the containers ({waiting or 'none yet'})", bound)


def _is_prepared(claim: Object) -> bool:
    ready = [
        condition["status"] == "True"
        for each in (claim.get("status") or {}).get("devices") or ()
        if each["driver"] == DRIVER
        for condition in each.get("conditions") or ()
        if condition["type"] == "Ready"
    ]
    return not results(claim) or (bool(ready) and all(ready))


def _not_ready(claim: Object) -> str:
    for each in (claim.get("status") or {}).get("devices") or ():
        for condition in each.get("conditions") or ():
            if condition["status"] != "True":
                return str(condition.get("message", ""))
    return ""


def waiting_containers(pod: Object) -> Iterator[tuple[str, str]]:
    """Each container of the pod that waits, with the kubelet's reason."""
    status = pod.get("status") or {}
    for each in (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ):
        waiting = (each.get("state") or {}).get("waiting")
        if waiting is not None:
            yield each["name"], str(waiting.get("reason", ""))


def _condition(pod: Object, kind: str) -> Mapping[str, Any]:
    found = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def limits_of(pod: Object, names: Collection[str] = tuple(RESOURCES.values())) -> set[str]:
    """Which of `names` the limits of the pod's containers have."""
    containers = (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ()))
    return {
        name
        for container in containers
        for name in (container.get("resources") or {}).get("limits") or ()
        if name in names
    }


def has_gcus(pod: Object, claims: Mapping[str, Object | None]) -> bool:
    """Whether the pod names any claim, or has a limit of the vendor's."""
    return bool(claims) or bool(limits_of(pod)) or pods.has_our_gate(pod)


def _newest(events: Iterable[Object], reasons: set[str]) -> str:
    found = [each for each in events if each.get("reason") in reasons]
    return str(found[-1].get("note", "")) if found else ""
