"""What a change in the cluster makes worth looking at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.allocator.node_selector import selected_name
from controller.cluster import pods
from controller.cluster.cache import Changed, ClusterCache, matters
from controller.rules.release import cleared_by_scheduler
from controller.work.agenda import Key, Subject
from controller.work.memory import Memory
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claim import Object, allocation
from dra_driver.model.names import FINALIZER


class Triggers:
    """Gives the keys that a change concerns and takes note of what it tells; writes nothing.

    `waiting` are the pods that wait for devices, always those of the moment.
    """

    def __init__(self, cache: ClusterCache, memory: Memory, waiting: Iterable[Key]) -> None:
        self._cache = cache
        self._memory = memory
        self._waiting = waiting

    def of(self, changed: Changed, now: float) -> Iterator[Key]:
        if changed.resource is PODS:
            yield from self._pod(changed.old, changed.new)
        elif changed.resource is RESOURCE_CLAIMS:
            yield from self._claim(changed.old, changed.new, now)
        elif changed.resource is RESOURCE_CLAIM_TEMPLATES:
            yield Key.of_template(changed.new or changed.old or {})
        elif matters(changed):
            yield from self._waiting

    def _pod(self, old: Object | None, new: Object | None) -> Iterator[Key]:
        pod = new or old
        assert pod is not None  # a change has at least one side
        yield pods.key_of(pod)
        for name in pods.template_names(pod):
            yield Key(Subject.TEMPLATE, pod["metadata"]["namespace"], name)
        if new is None or pods.is_done(new):
            self._memory.forget_pod(pods.uid_of(pod))
            for name in filter(None, pods.claim_names(pod).values()):
                yield Key(Subject.CLAIM, pod["metadata"]["namespace"], name)

    def _claim(self, old: Object | None, new: Object | None, now: float) -> Iterator[Key]:
        claim = new or old
        assert claim is not None  # a change has at least one side
        freed = old is not None and allocation(old) is not None and _unallocated(new)
        if freed and new is not None:
            self._memory.released(_uid(claim), now)
        if new is None:
            self._memory.forget_claim(_uid(claim))
        elif old is None and allocation(new) is None and _was_allocated(new):
            self._memory.released(_uid(claim), now)
        users = self._cache.pods_of(claim)
        for pod in users:
            if cleared_by_scheduler(old, new, pod):
                node = selected_name((allocation(old or {}) or {}).get("nodeSelector"))
                if node is not None:
                    self._memory.failed(pods.uid_of(pod), node, now)
            yield pods.key_of(pod)
        yield Key.of_claim(claim)
        if freed:
            yield from self._waiting


def _unallocated(claim: Object | None) -> bool:
    return claim is None or allocation(claim) is None


def _was_allocated(claim: Object) -> bool:
    """The finalizer stays behind when an allocation is cleared (seen on 1.36.3)."""
    return FINALIZER in (claim["metadata"].get("finalizers") or ())


def _uid(claim: Object) -> str:
    return str(claim["metadata"]["uid"])
