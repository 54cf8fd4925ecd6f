"""Updates the clocks with what others do to claims, pods and groups of pods."""

from __future__ import annotations

from controller.allocating.clocks import Clocks
from controller.cache import pods
from controller.cache.cache import Changed
from controller.cache.claims import allocated_node, given_up
from controller.cache.keys import uid_of
from controller.cache.pod_groups import PodGroup
from controller.reconcile.context import Context
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.names import FINALIZER


class ClockUpdater:
    """One instance, one thread."""

    def __init__(self, context: Context, clocks: Clocks) -> None:
        self._context = context
        self._cache = context.cache
        self._backoff = clocks.backoff
        self._bind_clock = clocks.bind

    def on_change(self, changed: Changed, now: float) -> None:
        """The cache has the change of one object. Its `old` and `new` are never two objects of one
        name."""
        old, new = changed.old, changed.new
        if changed.resource is PODS:
            pod = new or old or {}
            if new is None or pods.is_done(new):
                self._backoff.forget_pod(uid_of(pod))
                self._bind_clock.forget(uid_of(pod))
        elif changed.resource is RESOURCE_CLAIMS:
            self._on_claim(old, new, now)
        elif changed.resource is POD_GROUPS and old is not None and new is None:
            self._bind_clock.forget(uid_of(old))

    def _on_claim(self, old: Object | None, new: Object | None, now: float) -> None:
        was_allocated = old is not None and allocation(old) is not None
        if new is None:
            self._backoff.forget_claim(uid_of(old or {}))
        elif allocation(new) is None and (was_allocated or (old is None and _has_finalizer(new))):
            self._backoff.record_release(uid_of(new), now)
        node = None if old is None else allocated_node(old)
        if node is None or new is None or allocation(new) is not None:
            return
        for pod in self._cache.pods_of(new):
            group = self._cache.groups.group_of(pod)
            if given_up(old, new, pod, "" if group is None else group.uid):
                self._on_given_up(pod, group, node, now)

    def _on_given_up(self, pod: Object, group: PodGroup | None, node: str, now: float) -> None:
        """The pod lost its allocation, and avoids the node for a while. It does not if the clock
        released the allocation, nor if its group lacked something. kube-scheduler clears those of
        all members of a gang that it cannot bind: then the gang pauses, so that two gangs which
        took half of the cards each do not do so again at the same time."""
        self._backoff.forget_allocation(uid_of(pod))
        if group is not None and group.waits_for() is not None:
            return
        clock, is_gang = self._bind_clock, group is not None and group.is_gang
        unit = self._cache.unit_uid(pod)
        is_paused = clock.paused_until(unit, pods.not_scheduled(pod)) > now
        if group is not None and is_gang and not is_paused:
            # How many members were served is as their last steps found it: from before.
            quiet = self._context.settings.quiet_time
            clock.begin_pause(unit, now + quiet, first=quiet, node_failed=group.is_whole)
        if clock.has_node_failed(unit) if is_gang else not is_paused:
            self._backoff.record_failure(uid_of(pod), node, now)


def _has_finalizer(claim: Object) -> bool:
    """The finalizer stays when an allocation is cleared (seen on 1.36.3)."""
    return FINALIZER in (claim["metadata"].get("finalizers") or ())
