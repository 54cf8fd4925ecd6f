"""How far a PodGroup of ``scheduling.k8s.io`` is: kube-scheduler binds its pods together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.cache import pods
from controller.cache.keys import full_name
from controller.cache.pod_groups import Member, PodGroup, PodGroups
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import POD_GROUPS, POD_GROUPS_V1BETA1, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from kubectl_gcu.cluster.claims import claims_of

_VERSIONS: Final = (POD_GROUPS, POD_GROUPS_V1BETA1)


@dataclass(frozen=True, slots=True)
class PodGroupProgress:
    """`group` is how the controller sees the PodGroup; None where the user may not read it. The
    numbers are of the group's pods: all, those whose claims are all allocated, and those that are
    bound. A pod that has ended or is being deleted does not count."""

    name: str
    pods: int
    with_devices: int
    bound: int
    group: PodGroup | None = None

    @property
    def may_hold_back(self) -> bool:
        """Whether pods of the group may wait for others of it, or for the PodGroup."""
        if self.group is None:
            return True
        return self.group.waits_for() is not None or self.bound < self.group.min_count

    def __str__(self) -> str:
        is_gang = self.group is not None and self.group.is_gang
        needs = f" needs {self.group.min_count} pods" if self.group and is_gang else ""
        return (
            f"PodGroup {self.name}{needs} (existing: {self.pods}, with devices: "
            f"{self.with_devices}, bound: {self.bound})"
        )


def progress(name: str, found: Sequence[Object], claims: Mapping[str, Object]) -> PodGroupProgress:
    """`found` are pods, at least all of the group, and `claims` theirs, by ``namespace/name``."""
    members = [
        each
        for each in found
        if pods.group_name(each) == name and not pods.is_done(each) and not pods.is_deleting(each)
    ]
    return PodGroupProgress(
        name,
        pods=len(members),
        with_devices=sum(_is_served(each, claims) for each in members),
        bound=sum(bool(pods.node_name(each)) for each in members),
    )


def read_group(api: Api, pod: Object) -> tuple[PodGroupProgress | None, str]:
    """How far the pod's group is; None for a pod without one, where the server has no PodGroups,
    and where the user may not list pods and claims. And a sentence about what is not shown."""
    name, namespace = pods.group_name(pod), str(pod["metadata"]["namespace"])
    if name is None:
        return None, ""
    groups, unread = _groups(api, namespace, name)
    if groups is None and not unread:
        return None, ""
    try:
        members = api.list(PODS, namespace=namespace).items
        listed = api.list(RESOURCE_CLAIMS, namespace=namespace).items
    except Forbidden:
        return None, (
            f"you may not list pods and resourceclaims in the namespace {namespace}: how many pods "
            f"of the PodGroup {name} there are is not shown"
        )
    claims = {full_name(claim): claim for claim in listed}
    known = progress(name, members, claims)
    if groups is not None:
        known = as_controller(known, pod, groups, members, claims)
    return known, unread


def _groups(api: Api, namespace: str, name: str) -> tuple[Sequence[Object] | None, str]:
    """The PodGroup, or nothing; None where no version of the kind can be listed. And a sentence
    where that is for want of a right."""
    is_forbidden = False
    selector = f"metadata.name={name.partition('/')[2]}"
    for resource in _VERSIONS:
        try:
            return api.list(resource, namespace=namespace, field_selector=selector).items, ""
        except NotFound:
            continue
        except Forbidden:  # the answer for a version that the server does not have, too
            is_forbidden = True
    if not is_forbidden:
        return None, ""
    return None, (
        f"you may not list podgroups of scheduling.k8s.io in the namespace {namespace}: how many "
        f"pods the PodGroup {name} needs is not shown"
    )


def as_controller(
    known: PodGroupProgress,
    pod: Object,
    groups: Sequence[Object],
    members: Sequence[Object],
    claims: Mapping[str, Object],
) -> PodGroupProgress:
    """With what the controller's own code says of the group."""
    view = PodGroups()
    view.follow(is_served=True)
    for group in groups:
        view.set_group(known.name, group)
    for member in members:
        view.set_pod(
            full_name(member), member, has_claims=None not in claims_of(member, claims).values()
        )
        if _is_served(member, claims):
            view.set_found(member, Member.SERVED)
    return replace(known, group=view.group_of(pod))


def _is_served(pod: Object, claims: Mapping[str, Object]) -> bool:
    return all(allocation(each or {}) for each in claims_of(pod, claims).values())
