"""``kubectl gcu explain``: in which step a pod is, what it waits for, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from controller.allocator.ownership import requested_classes
from controller.cache import pods
from controller.cache.claims import allocated_by_us
from dra_driver.asks.limits import limit_names
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.preflight import OLDEST
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dra_driver.model.claims.claim import Object, allocation, claim_names
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import CLASS_WHOLE
from kubectl_gcu.checks.installation import is_ready
from kubectl_gcu.cluster.observed_pod import ObservedPod, observe_pod
from kubectl_gcu.cluster.pod_events import event_time
from kubectl_gcu.cluster.pod_status import is_untried, scheduled_condition
from kubectl_gcu.cluster.to_decide import objects_to_decide, volumes_of
from kubectl_gcu.scheduling.admin_access import (
    NEEDS_FREE_CARD,
    has_admin_access,
)
from kubectl_gcu.scheduling.asked import asked
from kubectl_gcu.scheduling.decision import LiveAllocator
from kubectl_gcu.scheduling.explanation import Explanation
from kubectl_gcu.scheduling.held import held_devices, what_comes_next
from kubectl_gcu.scheduling.nominated import with_scheduler
from kubectl_gcu.scheduling.packing import controllers
from kubectl_gcu.scheduling.refusal import MAKE_ROOM, refusal
from kubectl_gcu.scheduling.steps import (
    Step,
    has_gcus,
    note_of,
    released,
    step_of,
    why_not_allocated,
)
from kubectl_gcu.scheduling.unbound import incomplete_group, why_unbound
from kubectl_gcu.scheduling.verdict import Verdict

_NO_CONTROLLER = "no pod of the controller is ready, and without it nothing is allocated"
_NOBODY_LIFTS = "no pod of the controller is ready, and without it nobody lifts the scheduling gate"
_AFTER_PAUSE = "the controller allocates for the pod again after a pause"
_PERSON = "the pod's author or an administrator: the end of other claims would not help"
# The reason names the field, and the claim or DeviceClass that has it.
_CORRECT = (
    "correct the field: in a DeviceClass in place; else in a new claim or its claim template, and "
    "create the pod again"
)


def explain_pod(api: Api, namespace: str, name: str, *, now: datetime) -> Explanation:
    """Raises NotFound, Forbidden and other KubeErrors of the pod itself."""
    found = observe_pod(api, namespace, name)
    if not has_gcus(found.pod, found.claims):
        return Explanation(found.name, Step("", "it asks for no GCU by claims or limits"))
    explanation = _by_objects(api, found, now)
    return (
        _by_allocator(api, found, explanation)
        if explanation.step.waits_for_devices
        else explanation
    )


def _by_objects(api: Api, found: ObservedPod, now: datetime) -> Explanation:
    """What the pod, its claims, its events and its PodGroup say."""
    pod, group = found.pod, found.group
    unbound = why_unbound(pod, group=group, binds_others=found.binds_others)
    step = step_of(
        pod,
        found.claims,
        found.events,
        serves_claims=bool(limit_names(pod)) and _serves_claims(api),
        unbound=unbound,
    )
    if step.waits_for_devices and group and (lack := incomplete_group(group)):
        step = Step(lack.who, lack.why, step.since, remedy=lack.remedy)
    freed = _freed(found.events) if step.waits_for_devices else ""
    if freed and is_untried(pod):  # otherwise it waits in vain again
        step = replace(step, remedy=unbound.remedy)
    holds = held_devices(pod, found.present.values(), now)
    # It takes nothing back that kube-scheduler allocated.
    is_controllers = any(map(allocated_by_us, found.present.values()))
    return Explanation(
        found.name,
        step,
        missing=found.unseen if step.who else "",
        refusal=_refusal(pod, step, found.events),
        holds=holds,
        then=what_comes_next(pod, group) if holds and is_controllers else "",
        group=str(group) if group and group.may_hold_back else "",
        freed=freed,
    )


def _by_allocator(api: Api, found: ObservedPod, explanation: Explanation) -> Explanation:
    """With what the allocator decides about the pod, if the user may read all that it reads."""
    objects, missing = objects_to_decide(api)
    missing = "; ".join(filter(None, (missing, found.unseen)))
    if not objects:
        return replace(explanation, missing=missing)
    volumes, unread = volumes_of(api, found.pod)
    allocator = LiveAllocator(objects)
    if allocator.for_scheduler and (step := _untried_by_other_scheduler(found, explanation.step)):
        return replace(
            explanation, step=step, missing=found.unseen, asks=asked(found.present.values())
        )
    verdict = _decide(allocator, found.pod, found.present, volumes)
    if verdict is None:
        step = _of_other_driver(explanation.step, found.present, objects[DEVICE_CLASSES])
        return replace(explanation, step=step, missing=found.unseen)
    if verdict.node and (lack := _unserved(allocator, found.pod, objects[PODS])):
        remedy = "kubectl gcu doctor says what is wrong with the controller"
        verdict = replace(verdict, reason=lack, remedy=remedy, needs_person=True)
    elif verdict.node and explanation.freed:
        verdict = replace(verdict, remedy=_AFTER_PAUSE)
    step = explanation.step
    if verdict.needs_person:
        step = replace(step, who=_PERSON)
    elif allocator.for_scheduler:
        step = with_scheduler(found.pod, step, why_not_allocated(found.events))
    return replace(
        explanation,
        step=step,
        verdict=verdict,
        before=_before(found.pod, objects, allocator),
        missing="; ".join(filter(None, (missing, unread))),
        asks=asked(found.present.values()),
    )


def _freed(events: Sequence[Object]) -> str:
    """When and why the controller took the pod's devices back, if that was the last that it did."""
    event = released(events)
    if event is None:
        return ""
    to_the_second = event_time(event).partition(".")[0].removesuffix("Z")
    return f"{to_the_second}Z: {note_of(event)}"


def _untried_by_other_scheduler(found: ObservedPod, step: Step) -> Step | None:
    """The step of a pod whose claims its scheduler allocates, where that is not the default one and
    has not tried the pod."""
    pod = found.pod
    if pods.scheduler_name(pod) == pods.DEFAULT_SCHEDULER or not is_untried(pod):
        return None
    if pods.has_our_gate(pod) or pods.nominated_node(pod):
        return None
    reason = why_unbound(pod, group=found.group, binds_others=found.binds_others)
    return replace(step, who=reason.who, text=reason.why, remedy=reason.remedy)


def _decide(
    allocator: LiveAllocator, pod: Object, claims: Mapping[str, Object], volumes: Sequence[Object]
) -> Verdict | None:
    try:
        return _verdict(allocator, pod, claims, volumes)
    except InvalidValue as error:
        return Verdict("", str(error), remedy=_CORRECT, needs_person=True)
    except Refused as error:
        return Verdict("", str(error), needs_person=True)


def _verdict(
    allocator: LiveAllocator, pod: Object, claims: Mapping[str, Object], volumes: Sequence[Object]
) -> Verdict | None:
    verdict = allocator.decide(pod, claims, volumes)
    if verdict is None or verdict.node:
        return verdict
    if not (allocator.for_scheduler and has_admin_access(claims)):
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; {NEEDS_FREE_CARD}")


def _unserved(allocator: LiveAllocator, pod: Object, found: Sequence[Object]) -> str:
    """Why a free device helps nobody: the pod needs a controller, and none is ready."""
    if any(map(is_ready, controllers(found))):
        return ""
    if not allocator.for_scheduler:
        return _NO_CONTROLLER
    return _NOBODY_LIFTS if pods.has_our_gate(pod) else ""


def _refusal(pod: Object, step: Step, events: Sequence[Object]) -> str:
    """Also while claims are allocated again, and kube-scheduler has not tried the pod since."""
    if not step.who or pods.node_name(pod) or step.remedy == MAKE_ROOM:
        return ""
    return refusal(scheduled_condition(pod), events)


def _of_other_driver(step: Step, claims: Mapping[str, Object], classes: Sequence[Object]) -> Step:
    """The step of a pod none of whose unallocated claims is for this driver to allocate."""
    known = {each["metadata"]["name"] for each in classes}
    unknown = sorted(
        name
        for claim in claims.values()
        if allocation(claim) is None
        for name in requested_classes(claim)
        if name not in known
    )
    if unknown:
        text = f"the DeviceClass {unknown[0]} does not exist; there are {', '.join(sorted(known))}"
        return Step("whoever creates DeviceClasses, or the pod's author", text, step.since)
    return Step(
        "the allocator of another driver",
        "its unallocated claims ask for no device of this driver",
        step.since,
    )


def pods_of_claim(api: Api, namespace: str, name: str) -> list[str]:
    """The names of the pods that use the claim, those that have ended left out. Raises NotFound if
    there is no such claim."""
    api.get(RESOURCE_CLAIMS, name, namespace=namespace)
    return sorted(
        str(pod["metadata"]["name"])
        for pod in api.list(PODS, namespace=namespace).items
        if name in _claims_of(pod) and not pods.is_done(pod)
    )


def _claims_of(pod: Object) -> set[str | None]:
    """With the claim that kube-scheduler made for limits."""
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return {*claim_names(pod).values(), extended.get("resourceClaimName")}


def _serves_claims(api: Api) -> bool:
    """Whether the chart serves claims here: then it has DeviceClasses, and no scheduler extender.
    Where the user may not list them, the server's version has to do."""
    version = api.server_version()
    if (version.major, version.minor) < OLDEST:
        return False
    try:
        found = api.list(DEVICE_CLASSES).items
    except NotFound:  # DRA can be switched off
        return False
    except Forbidden:
        return True
    return any(each["metadata"]["name"] == CLASS_WHOLE for each in found)


def _before(
    pod: Object, objects: Mapping[Resource, Sequence[Object]], allocator: LiveAllocator
) -> tuple[str, ...]:
    claims = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each
        for each in objects[RESOURCE_CLAIMS]
    }
    waiting: list[tuple[Object, dict[str, Object]]] = []
    for each in sorted(objects[PODS], key=pods.urgency):
        if pods.urgency(each) >= pods.urgency(pod) or pods.node_name(each) or pods.is_aside(each):
            continue
        namespace = each["metadata"]["namespace"]
        its = {
            reference: claims[namespace, name]
            for reference, name in claim_names(each).items()
            if name and (namespace, name) in claims
        }
        if any(allocation(claim) is None and allocator.serves(claim) for claim in its.values()):
            waiting.append((each, its))
    return tuple(
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in allocator.servable(waiting)
    )
