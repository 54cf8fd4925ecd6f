"""``kubectl gcu explain podgroup``: how far a PodGroup is, and what all its pods wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controller.cache import pods
from dra_driver.kube.api import Api
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import POD_GROUPS, POD_GROUPS_V1BETA1, PODS
from dra_driver.model.claims.claim import Object
from kubectl_gcu.cluster.pod_events import events_about
from kubectl_gcu.cluster.pod_groups import PodGroupProgress, read_group
from kubectl_gcu.scheduling.steps import why_not_allocated
from kubectl_gcu.scheduling.unbound import incomplete_group
from kubectl_gcu.words import labelled

_SCHEDULED = "PodGroupInitiallyScheduled"


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """`who` has to act next; empty if no pod waits. `group` says how far the PodGroup is, `gated`
    how many pods the driver's gate holds back, and `named` how many have each node named.
    `missing` says what could not be found out."""

    name: str
    who: str
    why: str
    group: str
    gated: int = 0
    named: tuple[str, ...] = ()
    missing: str = ""


def explain_group(api: Api, namespace: str, name: str) -> GroupExplanation:
    """Raises NotFound if there is no such PodGroup, and other KubeErrors of it and its pods."""
    found = _read(api, namespace, name)
    full = f"{namespace}/{name}"
    members = [
        pod
        for pod in api.list(PODS, namespace=namespace).items
        if pods.group_name(pod) == full and not (pods.is_done(pod) or pods.is_deleting(pod))
    ]
    if not members:
        return GroupExplanation(full, "whoever creates its pods", "it has no pods", "")
    progress, unread = read_group(api, members[0])
    waiting = [pod for pod in members if not pods.node_name(pod)]
    events, no_events = events_about(api, namespace, [found, *waiting])
    gated = sum(map(pods.has_our_gate, waiting))
    who, why = "", ""
    if waiting and progress is not None:
        who, why = _next(progress, found, events, gated)
    nodes = Counter(filter(None, map(pods.nominated_node, waiting)))
    return GroupExplanation(
        full,
        who,
        why,
        str(progress or ""),
        gated,
        tuple(f"{node} ({count})" for node, count in sorted(nodes.items())),
        "; ".join(filter(None, (unread, no_events))),
    )


def group_lines(explanation: GroupExplanation) -> Iterator[str]:
    """For people."""
    said = {
        "next": explanation.who or "nobody has to do anything",
        "why": explanation.why,
        "group": explanation.group,
        "gated": str(explanation.gated or ""),
        "named": ", ".join(explanation.named),
    }
    return labelled(f"podgroup {explanation.name}", ((k, text) for k, text in said.items() if text))


def _read(api: Api, namespace: str, name: str) -> Object:
    try:
        return api.get(POD_GROUPS, name, namespace=namespace)
    except NotFound:
        return api.get(POD_GROUPS_V1BETA1, name, namespace=namespace)


def _next(
    progress: PodGroupProgress, group: Object, events: Sequence[Object], gated: int
) -> tuple[str, str]:
    """Who acts next, and why the pods wait."""
    if (lack := incomplete_group(progress)) is not None:
        return lack.who, lack.why
    of_group = [event for event in events if _is_about_group(event)]
    if gated and (why := why_not_allocated(of_group)):
        return "whoever ends other claims, or adds nodes", why
    # Where the controller allocates, it says so of each pod.
    of_pods = [event for event in events if not _is_about_group(event)]
    if progress.with_devices < progress.pods and (why := why_not_allocated(of_pods)):
        return "the allocator", why
    if gated:
        return "the controller", "it has not decided yet"
    said = [
        str(each.get("message") or "")
        for each in (group.get("status") or {}).get("conditions") or ()
        if each.get("type") == _SCHEDULED and each.get("status") == "False"
    ]
    return "kube-scheduler", said[-1] if said else "it has not tried the group yet"


def _is_about_group(event: Object) -> bool:
    return bool((event.get("regarding") or {}).get("kind") == POD_GROUPS.kind)
