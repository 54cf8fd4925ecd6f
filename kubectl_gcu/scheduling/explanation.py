"""What ``kubectl gcu explain`` says about a pod, and its words. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kubectl_gcu.scheduling.held import HeldDevices
from kubectl_gcu.scheduling.refusal import MAKE_ROOM
from kubectl_gcu.scheduling.steps import Step
from kubectl_gcu.scheduling.verdict import Verdict
from kubectl_gcu.words import first_of, labelled

_MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """`verdict` is that of the allocator, where one was asked; `before` names the pods that wait
    for GCUs and are more urgent, by priority, then age, without those that could not be served if
    all other claims ended. `missing` says what could not be found out. `refusal` is what
    kube-scheduler has against nodes, where the step does not say it. `asks` says what its claims
    request. `holds` is what the pod holds without being bound, and `then` says what the controller
    does about that. `group` says how far the pod's PodGroup is, where the pod may wait for it.
    `freed` says when and why the controller took the pod's devices back."""

    pod: str
    step: Step
    verdict: Verdict | None = None
    before: tuple[str, ...] = ()
    missing: str = ""
    refusal: str = ""
    asks: str = ""
    holds: HeldDevices | None = None
    then: str = ""
    group: str = ""
    freed: str = ""


def lines(explanation: Explanation) -> Iterator[str]:
    """For people."""
    return labelled(f"pod {explanation.pod}", statements(explanation))


def statements(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """What is said of the pod, each with its label, such as ``why``."""
    step, verdict = explanation.step, explanation.verdict
    why = verdict.reason if verdict and verdict.reason else step.text
    for label, text in (
        ("asks", explanation.asks),
        ("next", _next(explanation)),
        ("holds", str(explanation.holds or "")),
        ("why", why),
        ("group", explanation.group),
        ("freed", explanation.freed),
        ("since", step.since),
        ("also", explanation.refusal),
        ("help", _room(explanation)),
        ("help", step.remedy),
    ):
        if text:
            yield label, text
    if verdict is not None:
        yield from _of_verdict(verdict, refused=bool(explanation.refusal))
        if explanation.before:
            before = first_of(explanation.before, _MOST_LINES)
            yield "before", f"these waiting pods are more urgent: {before}"
    if explanation.then:
        yield "then", explanation.then


def _room(explanation: Explanation) -> str:
    """What helps where kube-scheduler lacks something that is no GCU; with a verdict its own lines
    say that."""
    is_shown = explanation.refusal and not explanation.step.waits_for_devices
    return MAKE_ROOM if is_shown else ""


def _next(explanation: Explanation) -> str:
    who = explanation.step.who or "nobody has to do anything"
    if explanation.refusal and explanation.step.waits_for_devices:
        who += ", and a person: kube-scheduler lacks something that is no GCU"
    return who


def _of_verdict(verdict: Verdict, *, refused: bool) -> Iterator[tuple[str, str]]:
    if verdict.node and refused:
        yield "help", f"node {verdict.node} has the GCUs; {MAKE_ROOM}"
        return
    if verdict.node and verdict.remedy:
        yield "help", f"node {verdict.node} has what it asks for; {verdict.remedy}"
        return
    if verdict.node:
        yield "help", f"none is needed: node {verdict.node} has what it asks for"
        return
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node, reason in (verdict.by_node or {}).items():
        nodes[reason].append(node)
    if len(nodes) > 1:
        for reason, names in sorted(nodes.items())[:_MOST_LINES]:
            yield "node", f"{first_of(names, _MOST_LINES)}: {reason}"
    if len(verdict.tainted) > _MOST_LINES:
        yield "taint", f"of {len(verdict.tainted)} cards the first {_MOST_LINES} are:"
    yield from (("taint", each) for each in verdict.tainted[:_MOST_LINES])
    yield from _helps(verdict)


def _helps(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for kind, names in (("claims", verdict.helps), ("pods", verdict.helps_pods)):
        if names:
            some = first_of(names, _MOST_LINES)
            yield "help", f"it fits when any one of these {kind} ends: {some}"
    if verdict.remedy:
        yield "help", verdict.remedy
