"""The pods that ask for GCUs and do not run yet, and the groups they are in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.allocator.ownership import forms, names_driver
from controller.cache import pods
from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object, results
from kubectl_gcu.cluster.claims import claims_of
from kubectl_gcu.cluster.pod_groups import PodGroupProgress, as_controller, progress
from kubectl_gcu.scheduling.asked import asked
from kubectl_gcu.scheduling.explain import has_class_of_driver
from kubectl_gcu.scheduling.steps import step_of
from kubectl_gcu.scheduling.unbound import why_unbound


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """`asks` says what it requests, and `next` who acts next, as far as its objects say it.
    `group` is its PodGroup (``namespace/name``), or empty. `node` is empty until it is bound."""

    namespace: str
    name: str
    uid: str
    created: str
    asks: str
    next: str
    group: str
    node: str


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """A PodGroup with pods that wait, and how far it is, in words."""

    name: str
    progress: str


@dataclass(frozen=True, slots=True)
class WaitingObjects:
    """What decides which pods wait. `claims` and `groups` are by ``namespace/name``, `classes` by
    name. `groups` is None where the user may not read PodGroups, or there are none."""

    pods: Collection[Object]
    claims: Mapping[str, Object]
    classes: Mapping[str, Object]
    groups: Mapping[str, Object] | None


def waiting(found: WaitingObjects) -> tuple[list[WaitingPod], list[WaitingGroup]]:
    """Pods in the order of their urgency, groups in that of their first pods."""
    serves_claims = has_class_of_driver(found.classes.values())
    pending = [pod for pod in found.pods if _is_pending(pod)]
    shown = [each for each in sorted(pending, key=_place_in_line) if _asks_us(each, found)]
    groups = _groups(shown, found)
    entries = [_entry(each, found, groups, serves_claims=serves_claims) for each in shown]
    named = [WaitingGroup(name, str(its)) for name, its in groups.items()]
    return [each for each in entries if each is not None], named


def _is_pending(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Pending" and not pods.is_deleting(pod)


def _place_in_line(pod: Object) -> tuple[int, str, str, str]:
    """Of equally urgent pods, always the same one is first."""
    metadata = pod["metadata"]
    return (*pods.urgency(pod), str(metadata["namespace"]), str(metadata["name"]))


def _asks_us(pod: Object, found: WaitingObjects) -> bool:
    """A claim that does not exist yet may be for this driver."""
    if limit_names(pod) or pods.has_our_gate(pod):
        return True
    claims = claims_of(pod, found.claims)
    return None in claims.values() or any(
        _is_for_driver(claim, found.classes) for claim in claims.values() if claim
    )


def _is_for_driver(claim: Object, classes: Mapping[str, Object]) -> bool:
    devices = claim["spec"].get("devices") or {}
    return bool(results(claim)) or any(names_driver(each, classes) for _, each in forms(devices))


def _groups(shown: Iterable[Object], found: WaitingObjects) -> dict[str, PodGroupProgress]:
    names = list(dict.fromkeys(name for each in shown if (name := pods.group_name(each))))
    if not names:
        return {}
    members: dict[str, list[Object]] = {name: [] for name in names}
    for pod in found.pods:
        name = pods.group_name(pod)
        if name in members:
            members[name].append(pod)
    return {name: _progress(name, members[name], found) for name in names}


def _progress(name: str, members: Sequence[Object], found: WaitingObjects) -> PodGroupProgress:
    known = progress(name, members, found.claims)
    if found.groups is None:
        return known
    group = found.groups.get(name)
    groups = [group] if group else []
    return as_controller(known, members[0], groups, members, found.claims)


def _entry(
    pod: Object,
    found: WaitingObjects,
    groups: Mapping[str, PodGroupProgress],
    *,
    serves_claims: bool,
) -> WaitingPod | None:
    """None of a pod for which nobody has to do anything."""
    group = pods.group_name(pod) or ""
    claims = claims_of(pod, found.claims)
    unbound = why_unbound(pod, group=groups.get(group))
    step = step_of(pod, claims, (), serves_claims=serves_claims, unbound=unbound)
    if not step.who:
        return None
    metadata = pod["metadata"]
    return WaitingPod(
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        created=str(metadata.get("creationTimestamp", "")),
        asks="; ".join(_asks(pod, claims)),
        next=step.who,
        group=group,
        node=pods.node_name(pod) or "",
    )


def _asks(pod: Object, claims: Mapping[str, Object | None]) -> Iterator[str]:
    yield from filter(None, [asked(filter(None, claims.values()))])
    if limits := sorted(limit_names(pod)):
        yield f"limits {', '.join(limits)}"
