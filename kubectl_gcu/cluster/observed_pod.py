"""What the API server has about one pod: its claims, events and PodGroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.cache import pods
from controller.cache.keys import full_name
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, claim_names
from kubectl_gcu.cluster.pod_events import events_about
from kubectl_gcu.cluster.pod_groups import PodGroupProgress, read_group
from kubectl_gcu.cluster.pod_status import is_untried


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """`claims` are the pod's by their names in the pod, None where there is no such claim (yet).
    `events` are about the pod and its claims, the newest last. `group` is None for a pod that is
    bound, and where the pod has none. `binds_others` is whether other pods are bound that name the
    same scheduler; it is looked up only where no scheduler has tried the pod. `unread` says what
    the user may not read, and `reads_events` is whether he may read events."""

    pod: Object
    claims: Mapping[str, Object | None]
    events: Sequence[Object] = ()
    group: PodGroupProgress | None = None
    binds_others: bool = False
    unread: tuple[str, ...] = ()
    reads_events: bool = True

    @property
    def name(self) -> str:
        """``namespace/name``."""
        return full_name(self.pod)

    @property
    def present(self) -> Mapping[str, Object]:
        """The claims that exist."""
        return {reference: claim for reference, claim in self.claims.items() if claim is not None}


def observe_pod(api: Api, namespace: str, name: str) -> ObservedPod:
    """Raises NotFound, Forbidden and other KubeErrors of the pod itself, and of its claims."""
    pod = api.get(PODS, name, namespace=namespace)
    claims = {
        reference: _claim(api, namespace, claim) if claim else None
        for reference, claim in claim_names(pod).items()
    }
    events, no_events = events_about(api, namespace, [pod, *filter(None, claims.values())])
    if pods.node_name(pod) or pods.is_done(pod):
        unread = tuple(filter(None, [no_events]))
        return ObservedPod(pod, claims, events, unread=unread, reads_events=not no_events)
    group, no_group = read_group(api, pod)
    unread = tuple(filter(None, (no_events, no_group)))
    binds_others = _binds_others(api, pod)
    return ObservedPod(pod, claims, events, group, binds_others, unread, not no_events)


def _claim(api: Api, namespace: str, name: str) -> Object | None:
    try:
        return api.get(RESOURCE_CLAIMS, name, namespace=namespace)
    except NotFound:
        return None


def _binds_others(api: Api, pod: Object) -> bool:
    """False for the default scheduler, and where the user may not list all pods."""
    name = pods.scheduler_name(pod)
    if name == pods.DEFAULT_SCHEDULER or not is_untried(pod):
        return False
    try:
        bound = api.list(PODS, field_selector=f"spec.schedulerName={name},spec.nodeName!=")
    except Forbidden:
        return False
    return bool(bound.items)
