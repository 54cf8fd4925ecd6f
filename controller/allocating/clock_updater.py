"""Updates the clocks with what others do to claims, pods and groups of pods."""

from __future__ import annotations

from controller.allocating.clocks import Clocks
from controller.cache import pods
from controller.cache.cache import Changed, ClusterCache
from controller.cache.claims import allocated_node, given_up
from controller.cache.keys import uid_of
from controller.cache.pod_groups import PodGroup
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import FINALIZER


class ClockUpdater:
    """One instance, one thread. `quiet_time`: see `BackoffState`."""

    def __init__(self, cache: ClusterCache, clocks: Clocks, *, quiet_time: float) -> None:
        self._cache = cache
        self._backoff = clocks.backoff
        self._bind_clock = clocks.bind
        self._sight = clocks.sight
        self._refusals = clocks.refusals
        self._quiet_time = quiet_time

    def on_change(self, changed: Changed, now: float) -> None:
        """The cache has the change of one object. Its `old` and `new` are never two objects of one
        name."""
        old, new = changed.old, changed.new
        if changed.resource is PODS:
            pod = new or old or {}
            if new is None or pods.is_done(new):
                self._backoff.forget_pod(uid_of(pod))
                self._bind_clock.forget(uid_of(pod))
                self._sight.forget(uid_of(pod))
            else:
                self._on_verdict(old, new, now)
        elif changed.resource is RESOURCE_CLAIMS:
            self._on_claim(old, new, now)
        elif changed.resource is POD_GROUPS and old is not None and new is None:
            self._bind_clock.forget(uid_of(old))

    def _on_verdict(self, old: Object | None, new: Object, now: float) -> None:
        """kube-scheduler may say something else about the pod. The same message again proves
        nothing: any other change of the pod has it, too."""
        verdict = pods.verdict(new)
        if verdict is None or (old is not None and pods.verdict(old) == verdict):
            return
        refused = self._sight.on_verdict(uid_of(new), verdict)
        node = None if refused is None else self._cache.nodes.get(refused)
        if node is not None:
            self._refusals.learn(new, node, verdict, now)

    def _on_claim(self, old: Object | None, new: Object | None, now: float) -> None:
        if new is None:
            self._backoff.forget_claim(uid_of(old or {}))
        elif allocation(new) is not None:
            return
        elif old is None and _has_finalizer(new):
            self._backoff.record_release(uid_of(new), now)
        elif old is not None and allocation(old) is not None:
            node = allocated_node(old) or ""
            is_given_up = bool(node) and self._on_released(old, new, node, now)
            self._backoff.record_release(uid_of(new), now, "" if is_given_up else node)

    def _on_released(self, old: Object, new: Object, node: str, now: float) -> bool:
        """The claim's allocation on the node was cleared. Returns whether a pod waits that could
        not use it."""
        is_given_up = False
        for pod in self._cache.pods_of(new):
            group = self._cache.groups.group_of(pod)
            if not given_up(old, new, pod, "" if group is None else group.uid):
                continue
            is_given_up = True
            self._backoff.forget_allocation(uid_of(pod))
            if self._has_node_failed(pod, group, now):
                self._backoff.record_failure(uid_of(pod), node, now)
        return is_given_up

    def _has_node_failed(self, pod: Object, group: PodGroup | None, now: float) -> bool:
        """Whether the pod lost its allocation because it fits nowhere with it. It did not if the
        clock released the allocation, nor if its group lacked something."""
        if group is not None and group.waits_for() is not None:
            return False
        unit = self._cache.unit_uid(pod)
        is_paused = self._bind_clock.paused_until(unit, pods.not_scheduled(pod)) > now
        if group is None or not group.is_gang:
            return not is_paused
        if not is_paused:
            self._begin_pause(unit, now, node_failed=group.is_whole)
        return self._bind_clock.has_node_failed(unit)

    def _begin_pause(self, gang: str, now: float, *, node_failed: bool) -> None:
        """kube-scheduler clears the allocations of all members of a gang that it cannot bind. The
        gang pauses, so that two gangs which took half of the cards each do not do so again at the
        same time. Whether it was whole is as the last steps of its members found it: from before.
        """
        quiet = self._quiet_time
        self._bind_clock.begin_pause(gang, now + quiet, first=quiet, node_failed=node_failed)


def _has_finalizer(claim: Object) -> bool:
    """The finalizer stays when an allocation is cleared (seen on 1.36.3)."""
    return FINALIZER in (claim["metadata"].get("finalizers") or ())
