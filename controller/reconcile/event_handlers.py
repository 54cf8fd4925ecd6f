"""What a change in the cluster makes worth looking at."""

from __future__ import annotations

from collections.abc import Iterator

from controller.allocator.taints import TaintRule
from controller.cache import nodes, pods
from controller.cache.cache import Changed
from controller.cache.claims import allocated_node, given_up
from controller.cache.keys import Key, Subject, uid_of
from controller.reconcile.context import Context
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claim import Object, allocation
from dra_driver.model.names import DRIVER, FINALIZER


class EventHandlers:
    """Gives the keys that a change concerns and takes note of what it tells; writes nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache
        self._backoff = context.backoff

    def of(self, changed: Changed, now: float) -> Iterator[Key]:
        old, new = changed.old, changed.new
        if new is not None and changed.is_gone():
            # One is gone, and the other is new: what is noted of the one is not of the other.
            yield from self.of(Changed(changed.resource, old, None), now)
            yield from self.of(Changed(changed.resource, None, new), now)
        elif changed.resource is PODS:
            yield from self._pod(changed.old, changed.new)
        elif changed.resource is RESOURCE_CLAIMS:
            yield from self._claim(changed.old, changed.new, now)
        elif changed.resource is RESOURCE_CLAIM_TEMPLATES:
            yield Key.of_template(changed.new or changed.old or {})
        elif _may_help(changed):
            self._on_cluster(changed, now)

    def _on_cluster(self, changed: Changed, now: float) -> None:
        queue, obj = self._context.queue, changed.new or changed.old or {}
        if changed.resource is RESOURCE_SLICES:
            for each in filter(None, (changed.old, changed.new)):
                queue.on_published(each["spec"]["pool"]["name"])
        elif changed.resource is DEVICE_CLASSES:
            queue.on_class(obj["metadata"]["name"], now)
        elif changed.resource is NODES:
            queue.on_nodes([obj["metadata"]["name"]])
        else:  # a DeviceTaintRule, which may select devices of any node
            queue.on_nodes(self._cache.nodes)

    def _pod(self, old: Object | None, new: Object | None) -> Iterator[Key]:
        pod = new or old
        assert pod is not None  # a change has at least one side
        if old is not None and new is not None and _without_version(old) == _without_version(new):
            return  # a label or the like, which a tenant may change hundreds of times a second
        yield pods.key_of(pod)
        for name in pods.template_names(pod):
            yield Key(Subject.TEMPLATE, pod["metadata"]["namespace"], name)
        if new is None or pods.is_done(new):
            self._backoff.forget_pod(uid_of(pod))
            for name in filter(None, pods.claim_names(pod).values()):
                yield Key(Subject.CLAIM, pod["metadata"]["namespace"], name)

    def _claim(self, old: Object | None, new: Object | None, now: float) -> Iterator[Key]:
        claim = new or old
        assert claim is not None  # a change has at least one side
        if old is not None and allocation(old) is not None and not _is_allocated_still(old, new):
            self._context.queue.on_freed([old])
            if new is not None and allocation(new) is None:
                self._backoff.released(uid_of(claim), now)
        if new is None:
            self._backoff.forget_claim(uid_of(claim))
        elif old is None and allocation(new) is None and _was_allocated(new):
            self._backoff.released(uid_of(claim), now)
        yield Key.of_claim(claim)
        # Else it is an annotation or the like, as above, and thousands of pods may name the claim.
        if old is None or new is None or _for_users(old) != _for_users(new):
            yield from self._users(claim, old, new, now)

    def _users(
        self, claim: Object, old: Object | None, new: Object | None, now: float
    ) -> Iterator[Key]:
        for pod in self._cache.pods_of(claim):
            node = allocated_node(old) if old is not None else None
            if node is not None and given_up(old, new, pod):
                self._backoff.failed(uid_of(pod), node, now)
            yield pods.key_of(pod)


def _may_help(changed: Changed) -> bool:
    """Whether a change can make a waiting pod's verdict another one (update predicate)."""
    old, new = changed.old, changed.new
    if changed.resource is RESOURCE_SLICES and not _is_ours(old) and not _is_ours(new):
        return False
    if changed.resource is DEVICE_TAINT_RULES:
        # kube-controller-manager writes a rule's status while it evicts pods.
        return _rule(old) != _rule(new)
    if old is None or new is None:
        return True
    if changed.resource is NODES:
        return nodes.relevant(old) != nodes.relevant(new)
    return bool(old["spec"] != new["spec"])


def _without_version(pod: Object) -> Object:
    """All that is kept of the pod, which is what is read, apart from its version."""
    return pod | {"metadata": pod["metadata"] | {"resourceVersion": ""}}


def _for_users(claim: Object) -> tuple[object, ...]:
    """What may change of a claim that its pods' steps read."""
    metadata = claim["metadata"]
    told = (metadata.get(each) for each in ("uid", "deletionTimestamp", "ownerReferences"))
    return *told, claim["spec"], claim.get("status")


def _rule(obj: Object | None) -> TaintRule | None:
    return None if obj is None else TaintRule.parse(obj)


def _is_ours(published: Object | None) -> bool:
    return published is not None and published["spec"]["driver"] == DRIVER


def _is_allocated_still(old: Object, new: Object | None) -> bool:
    return new is not None and allocation(new) is not None and uid_of(old) == uid_of(new)


def _was_allocated(claim: Object) -> bool:
    """The finalizer stays behind when an allocation is cleared (seen on 1.36.3)."""
    return FINALIZER in (claim["metadata"].get("finalizers") or ())
