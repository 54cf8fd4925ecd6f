"""``kubectl gcu explain``: in which step a pod is, what it waits for, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.allocator.ownership import requested_classes
from controller.cache import pods
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
from kubectl_gcu.cluster.pod_events import events_about
from kubectl_gcu.cluster.to_decide import objects_to_decide, volumes_of
from kubectl_gcu.scheduling.asked import asked
from kubectl_gcu.scheduling.decision import LiveAllocator
from kubectl_gcu.scheduling.packing import controllers
from kubectl_gcu.scheduling.refusal import MAKE_ROOM, refusal
from kubectl_gcu.scheduling.steps import (
    Step,
    has_gcus,
    limits_of,
    scheduled_condition,
    step_of,
)
from kubectl_gcu.scheduling.verdict import Verdict

_MOST_LINES = 20
_NO_CONTROLLER = "no pod of the controller is ready, and without it nothing is allocated"
_PERSON = "the pod's author or an administrator: the end of other claims would not help"
# The reason names the field, and the claim or DeviceClass that has it.
_CORRECT = (
    "correct the field: in a DeviceClass in place; else in a new claim or its claim template, and "
    "create the pod again"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """`verdict` is that of the allocator, where one was asked; `before` names the pods that wait
    for GCUs and are more urgent, by priority, then age, without those that could not be served if
    all other claims ended. `missing` says what could not be found out. `refusal` is what
    kube-scheduler has against nodes, where the step does not say it. `asks` says what its claims
    request."""

    pod: str
    step: Step
    verdict: Verdict | None = None
    before: tuple[str, ...] = ()
    missing: str = ""
    refusal: str = ""
    asks: str = ""


def explain_pod(api: Api, namespace: str, name: str) -> Explanation:
    """Raises NotFound, Forbidden and other KubeErrors of the pod itself."""
    pod = api.get(PODS, name, namespace=namespace)
    claims = {
        reference: _get(api, namespace, claim) if claim else None
        for reference, claim in claim_names(pod).items()
    }
    full_name = f"{namespace}/{name}"
    if not has_gcus(pod, claims):
        return Explanation(full_name, Step("", "it asks for no GCU by claims or limits"))
    about = [pod, *(each for each in claims.values() if each)]
    events, unseen = events_about(api, namespace, about)
    step = step_of(pod, claims, events, serves_claims=bool(limits_of(pod)) and _serves_claims(api))
    refused = _refusal(pod, step, events)
    if not step.waits_for_devices:
        return Explanation(full_name, step, missing=unseen if step.who else "", refusal=refused)
    objects, missing = objects_to_decide(api)
    missing = "; ".join(filter(None, (missing, unseen)))
    if not objects:
        return Explanation(full_name, step, missing=missing, refusal=refused)
    present = {reference: claim for reference, claim in claims.items() if claim is not None}
    volumes, unread = volumes_of(api, pod)
    missing = "; ".join(filter(None, (missing, unread)))
    allocator = LiveAllocator(objects)
    verdict = _decide(allocator, pod, present, volumes)
    if verdict and verdict.node and not _is_served(allocator, objects[PODS]):
        remedy = "kubectl gcu doctor says what is wrong with the controller"
        verdict = replace(verdict, reason=_NO_CONTROLLER, remedy=remedy, needs_person=True)
    if verdict is None:
        step = _of_other_driver(step, present, objects[DEVICE_CLASSES])
        return Explanation(full_name, step, missing=unseen)
    if verdict.needs_person:
        step = replace(step, who=_PERSON)
    elif allocator.for_scheduler:
        step = replace(step, who="the allocator, which is kube-scheduler")
    before = _before(pod, objects, allocator)
    asks = asked(present.values())
    return Explanation(full_name, step, verdict, before, missing, refused, asks)


def _decide(
    allocator: LiveAllocator, pod: Object, claims: Mapping[str, Object], volumes: Sequence[Object]
) -> Verdict | None:
    try:
        return allocator.decide(pod, claims, volumes)
    except InvalidValue as error:
        return Verdict("", str(error), remedy=_CORRECT, needs_person=True)
    except Refused as error:
        return Verdict("", str(error), needs_person=True)


def _is_served(allocator: LiveAllocator, found: Sequence[Object]) -> bool:
    """Whether anything allocates: kube-scheduler, or a controller that is ready."""
    return allocator.for_scheduler or any(map(is_ready, controllers(found)))


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


def _get(api: Api, namespace: str, claim: str) -> Object | None:
    try:
        return api.get(RESOURCE_CLAIMS, claim, namespace=namespace)
    except NotFound:
        return None


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


def lines(explanation: Explanation) -> Iterator[str]:
    """For people."""
    step, verdict = explanation.step, explanation.verdict
    yield f"pod {explanation.pod}"
    if explanation.asks:
        yield f"  asks:   {explanation.asks}"
    yield f"  next:   {_next(explanation)}"
    yield f"  why:    {verdict.reason if verdict and verdict.reason else step.text}"
    if step.since:
        yield f"  since:  {step.since}"
    if explanation.refusal:
        yield f"  also:   {explanation.refusal}"
        if not step.waits_for_devices:
            yield f"  help:   {MAKE_ROOM}"
    if step.remedy:
        yield f"  help:   {step.remedy}"
    if verdict is not None:
        yield from _verdict_lines(verdict, refused=bool(explanation.refusal))
        if explanation.before:
            yield f"  before: these waiting pods are more urgent: {_some(explanation.before)}"


def _next(explanation: Explanation) -> str:
    who = explanation.step.who or "nobody has to do anything"
    if explanation.refusal and explanation.step.waits_for_devices:
        who += ", and a person: kube-scheduler lacks something that is no GCU"
    return who


def _verdict_lines(verdict: Verdict, *, refused: bool) -> Iterator[str]:
    if verdict.node and refused:
        yield f"  help:   node {verdict.node} has the GCUs; {MAKE_ROOM}"
        return
    if verdict.node and verdict.remedy:
        yield f"  help:   node {verdict.node} has what it asks for; {verdict.remedy}"
        return
    if verdict.node:
        yield f"  help:   none is needed: node {verdict.node} has what it asks for"
        return
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node, reason in (verdict.by_node or {}).items():
        nodes[reason].append(node)
    if len(nodes) > 1:
        for reason, names in sorted(nodes.items())[:_MOST_LINES]:
            yield f"  node:   {_some(names)}: {reason}"
    if len(verdict.tainted) > _MOST_LINES:
        yield f"  taint:  of {len(verdict.tainted)} cards the first {_MOST_LINES} are:"
    yield from (f"  taint:  {each}" for each in verdict.tainted[:_MOST_LINES])
    yield from _help_lines(verdict)


def _help_lines(verdict: Verdict) -> Iterator[str]:
    for kind, names in (("claims", verdict.helps), ("pods", verdict.helps_pods)):
        if names:
            yield f"  help:   it fits when any one of these {kind} ends: {_some(names)}"
    if verdict.remedy:
        yield f"  help:   {verdict.remedy}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LINES])
    rest = len(names) - _MOST_LINES
    return f"{shown} and {rest} more" if rest > 0 else shown
