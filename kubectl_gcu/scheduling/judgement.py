"""What ``kubectl gcu explain`` finds out about a pod: in which step it is, what it waits for, and
what would help. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches

from controller.allocator.ownership import requested_classes
from controller.cache import pods
from controller.cache.claims import allocated_by_us
from controller.cache.keys import full_name
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.errors import InvalidValue, Refused
from kubectl_gcu.checks.installation import is_ready
from kubectl_gcu.cluster.claims import claims_of
from kubectl_gcu.cluster.observed_pod import ObservedPod
from kubectl_gcu.cluster.pod_events import event_time
from kubectl_gcu.cluster.pod_status import is_untried, scheduled_condition
from kubectl_gcu.cluster.to_decide import ObservedCluster
from kubectl_gcu.scheduling.admin_access import NEEDS_FREE_CARD, needs_free_card
from kubectl_gcu.scheduling.asked import asked
from kubectl_gcu.scheduling.decision import LiveAllocator
from kubectl_gcu.scheduling.explanation import Explanation
from kubectl_gcu.scheduling.held import held_devices, what_comes_next
from kubectl_gcu.scheduling.nominated import with_scheduler
from kubectl_gcu.scheduling.packing import controllers
from kubectl_gcu.scheduling.refusal import MAKE_ROOM, refusal
from kubectl_gcu.scheduling.steps import (
    MAKES_CLAIMS,
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
_SEE_EVENTS = (
    "its events say why, to those who may read them: kubectl describe pod {name} --namespace "
    "{namespace}"
)
_OTHER_CLASS = (
    "Create the pod again with a claim, or a claim template, that names a DeviceClass that exists"
)


@dataclass(frozen=True, slots=True)
class _Judgement:
    """`step` is that of the explanation, or what the allocator makes of it. `verdict` is None if
    the pod does not wait for this driver's allocator. `asks` and `before` are those of
    `Explanation`."""

    step: Step
    verdict: Verdict | None = None
    asks: str = ""
    before: tuple[str, ...] = ()


def judge_by_objects(found: ObservedPod, *, serves_claims: bool, now: datetime) -> Explanation:
    """What the pod, its claims, its events and its PodGroup say. `serves_claims`: see `step_of`."""
    pod, group = found.pod, found.group
    if not has_gcus(pod, found.claims):
        return Explanation(found.name, Step("", "it asks for no GCU by claims or limits"))
    unbound = why_unbound(pod, group=group, binds_others=found.binds_others)
    step = step_of(pod, found.claims, found.events, serves_claims=serves_claims, unbound=unbound)
    if step.waits_for_devices and group and (lack := incomplete_group(group)):
        step = Step(lack.who, lack.why, step.since, remedy=lack.remedy)
    if step.who == MAKES_CLAIMS and not found.reads_events:
        step = replace(step, remedy=_SEE_EVENTS.format(**pod["metadata"]))
    freed = _freed(found.events) if step.waits_for_devices else ""
    if freed and is_untried(pod):  # otherwise it waits in vain again
        step = replace(step, remedy=unbound.remedy)
    holds = held_devices(pod, found.present.values(), now)
    # It takes nothing back that kube-scheduler allocated.
    is_controllers = any(map(allocated_by_us, found.present.values()))
    return Explanation(
        found.name,
        step,
        missing=_joined(found.unread) if step.who else "",
        refusal=_refusal(pod, step, found.events),
        holds=holds,
        then=what_comes_next(pod, group) if holds and is_controllers else "",
        group=str(group) if group and group.may_hold_back else "",
        freed=freed,
    )


def judge_by_allocator(
    explanation: Explanation, found: ObservedPod, cluster: ObservedCluster
) -> Explanation:
    """The explanation, with what the allocator decides about the pod if the user may read all that
    it reads."""
    judgement = _Judgement(explanation.step)
    if cluster.objects:
        judgement = _judge(explanation, found, cluster)
    # What was not read of the cluster matters where the allocator decided, or could not.
    is_decided = judgement.verdict is not None or not cluster.objects
    return replace(
        explanation,
        step=judgement.step,
        verdict=judgement.verdict,
        before=judgement.before,
        missing=_joined([*(cluster.unread if is_decided else ()), *found.unread]),
        asks=judgement.asks,
    )


def _judge(explanation: Explanation, found: ObservedPod, cluster: ObservedCluster) -> _Judgement:
    step, objects, asks = explanation.step, cluster.objects, asked(found.present.values())
    allocator = LiveAllocator(objects)
    if allocator.for_scheduler and _waits_for_other_scheduler(found.pod):
        reason = why_unbound(found.pod, group=found.group, binds_others=found.binds_others)
        return _Judgement(
            replace(step, who=reason.who, text=reason.why, remedy=reason.remedy), asks=asks
        )
    verdict = _decide(allocator, found, cluster.volumes)
    if verdict is None:
        return _Judgement(_of_other_driver(step, found.present, objects[DEVICE_CLASSES]))
    if verdict.node:
        lack = _unserved(allocator, found.pod, objects[PODS])
        verdict = _unless_held_up(verdict, explanation.freed, lack)
    if verdict.needs_person:
        step = replace(step, who=_PERSON)
    elif allocator.for_scheduler:
        step = with_scheduler(found.pod, step, why_not_allocated(found.events))
    return _Judgement(step, verdict, asks, _before(found.pod, objects, allocator))


def _freed(events: Sequence[Object]) -> str:
    """When and why the controller took the pod's devices back, if that was the last that it did."""
    event = released(events)
    if event is None:
        return ""
    to_the_second = event_time(event).partition(".")[0].removesuffix("Z")
    return f"{to_the_second}Z: {note_of(event)}"


def _waits_for_other_scheduler(pod: Object) -> bool:
    """Whether the pod's scheduler is not the default one, and has not tried the pod; the controller
    has neither held it back nor named its node."""
    if pods.has_our_gate(pod) or pods.nominated_node(pod):
        return False
    return pods.scheduler_name(pod) != pods.DEFAULT_SCHEDULER and is_untried(pod)


def _decide(
    allocator: LiveAllocator, found: ObservedPod, volumes: Sequence[Object]
) -> Verdict | None:
    """As `LiveAllocator.decide`; what it refuses is a verdict, too."""
    try:
        verdict = allocator.decide(found.pod, found.present, volumes)
    except InvalidValue as error:
        return Verdict("", str(error), remedy=_CORRECT, needs_person=True)
    except Refused as error:
        return Verdict("", str(error), needs_person=True)
    lacks_class = allocator.for_scheduler and needs_free_card(found.present)
    if verdict is None or verdict.node or not lacks_class:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; {NEEDS_FREE_CARD}")


def _unserved(allocator: LiveAllocator, pod: Object, found: Sequence[Object]) -> str:
    """Why a free device helps nobody: the pod needs a controller, and none is ready."""
    if any(map(is_ready, controllers(found))):
        return ""
    if not allocator.for_scheduler:
        return _NO_CONTROLLER
    return _NOBODY_LIFTS if pods.has_our_gate(pod) else ""


def _unless_held_up(verdict: Verdict, freed: str, lack: str) -> Verdict:
    """A node has the devices; the verdict says what keeps the pod from them nevertheless."""
    if lack:
        remedy = "kubectl gcu doctor says what is wrong with the controller"
        return replace(verdict, reason=lack, remedy=remedy, needs_person=True)
    return replace(verdict, remedy=_AFTER_PAUSE) if freed else verdict


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
        near = get_close_matches(unknown[0], sorted(known), n=1)
        remedy = f"did you mean {near[0]}? {_OTHER_CLASS}" if near else _OTHER_CLASS
        who = "whoever creates DeviceClasses, or the pod's author"
        return Step(who, text, step.since, remedy=remedy)
    return Step(
        "the allocator of another driver",
        "its unallocated claims ask for no device of this driver",
        step.since,
    )


def _before(
    pod: Object, objects: Mapping[Resource, Sequence[Object]], allocator: LiveAllocator
) -> tuple[str, ...]:
    claims = {full_name(each): each for each in objects[RESOURCE_CLAIMS]}
    waiting: list[tuple[Object, dict[str, Object]]] = []
    for other in sorted(objects[PODS], key=pods.urgency):
        if (
            pods.urgency(other) >= pods.urgency(pod)
            or pods.node_name(other)
            or pods.is_aside(other)
        ):
            continue
        its = {name: claim for name, claim in claims_of(other, claims).items() if claim is not None}
        if any(allocation(claim) is None and allocator.serves(claim) for claim in its.values()):
            waiting.append((other, its))
    return tuple(map(full_name, allocator.servable(waiting)))


def _joined(sentences: Iterable[str]) -> str:
    return "; ".join(sentences)
