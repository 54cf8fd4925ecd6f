"""Which keys and which waiting pods a change of the cluster concerns (kube-scheduler:
eventhandlers.go)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from controller.allocator.taints import TaintRule
from controller.cache import nodes, pods
from controller.cache.cache import OTHER_SLICES, Changed
from controller.cache.keys import Key, Subject
from controller.reconcile.context import Context
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object, allocation, claim_names
from dra_driver.model.names import DRIVER


class EventHandlers:
    """Writes nothing to the API server. `record` is called with each change of one object, and the
    time, before anything is made of it."""

    def __init__(self, context: Context, record: Callable[[Changed, float], None]) -> None:
        self._context = context
        self._cache = context.cache
        self._queue = context.queue
        self._record = record

    def on_change(self, changed: Changed, now: float) -> Iterator[Key]:
        """Yields the keys to reconcile, and lets the queue know which nodes may serve waiting pods
        now."""
        resource, old, new = changed.resource, changed.old, changed.new
        if new is not None and changed.is_gone():
            # Two objects of one name: what is recorded of the old one is not of the new one.
            yield from self.on_change(Changed(resource, old, None), now)
            yield from self.on_change(Changed(resource, None, new), now)
            return
        self._record(changed, now)
        if resource is PODS:
            yield from self._on_pod(old, new)
        elif resource is RESOURCE_CLAIMS:
            yield from self._on_claim(old, new)
        elif resource is RESOURCE_CLAIM_TEMPLATES:
            yield Key.of_template(new or old or {})
        elif resource is DEVICE_CLASSES and _spec(old) != _spec(new):
            self._queue.on_device_class_changed(now)
        else:
            self._queue.on_nodes_changed(self._fitting_nodes(changed))
        yield from self._cache.groups.wake()

    def _fitting_nodes(self, changed: Changed) -> Collection[str]:
        """The nodes that may serve pods now which they could not serve before (kube-scheduler: a
        queueing hint; controller-runtime: an update predicate)."""
        old, new = changed.old, changed.new
        if changed.resource is RESOURCE_SLICES and _spec(old) != _spec(new):
            slices = [each for each in (old, new) if each and each["spec"]["driver"] == DRIVER]
            return self._context.nodes_of(each["spec"]["pool"]["name"] for each in slices)
        if changed.resource is OTHER_SLICES and _spec(old) != _spec(new):
            names = {each["spec"].get("nodeName") for each in (old, new) if each}
            return self._cache.nodes.keys() if None in names else names
        if changed.resource is NAMESPACES and _labels(old) != _labels(new):
            return self._cache.nodes.keys()  # the affinity of any pod may select it
        if changed.resource is DEVICE_TAINT_RULES and self._is_rule_changed(old, new):
            return self._cache.nodes.keys()  # the rule may select devices of any node
        if changed.resource is NODES and (
            old is None or new is None or nodes.relevant(old) != nodes.relevant(new)
        ):
            return [(new or old or {})["metadata"]["name"]]
        return ()

    def _is_rule_changed(self, old: Object | None, new: Object | None) -> bool:
        """Whether the DeviceTaintRule selects other devices of those that are known, or taints them
        in another way."""
        if self._cache.state().others.inventory.is_listed:
            return _spec(old) != _spec(new)
        return _rule(old) != _rule(new)

    def _on_pod(self, old: Object | None, new: Object | None) -> Iterator[Key]:
        pod = new or old
        assert pod is not None  # a change has an old or a new object
        if old is not None and new is not None and _without_version(old) == _without_version(new):
            return  # a tenant may change labels hundreds of times a second
        yield pods.key_of(pod)
        namespace = pod["metadata"]["namespace"]
        for name in pods.template_names(pod):
            yield Key(Subject.TEMPLATE, namespace, name)
        if new is None or pods.is_done(new):
            for name in filter(None, claim_names(pod).values()):
                yield Key(Subject.CLAIM, namespace, name)

    def _on_claim(self, old: Object | None, new: Object | None) -> Iterator[Key]:
        claim = new or old
        assert claim is not None  # a change has an old or a new object
        was_allocated = old is not None and allocation(old) is not None
        is_allocated = new is not None and allocation(new) is not None
        if old is not None and was_allocated and not is_allocated:
            self._queue.on_nodes_changed(self._cache.nodes_of_devices(old))
        yield Key.of_claim(claim)
        # Thousands of pods may name a claim whose annotations change.
        if old is None or new is None or _read_by_pods(old) != _read_by_pods(new):
            for pod in self._cache.pods_of(claim):
                yield pods.key_of(pod)


def _spec(obj: Object | None) -> Object | None:
    return None if obj is None else obj["spec"]


def _labels(namespace: Object | None) -> Object:
    return {} if namespace is None else namespace["metadata"].get("labels") or {}


def _without_version(pod: Object) -> Object:
    """All that is decoded of the pod, its version and its labels excepted."""
    return pod | {"metadata": pod["metadata"] | {"resourceVersion": "", "labels": {}}}


def _read_by_pods(claim: Object) -> tuple[object, ...]:
    """What may change of a claim, and is read in the steps of its pods."""
    metadata = claim["metadata"]
    found = (metadata.get(each) for each in ("uid", "deletionTimestamp", "ownerReferences"))
    return *found, claim["spec"], claim.get("status")


def _rule(obj: Object | None) -> TaintRule | None:
    return None if obj is None else TaintRule.parse(obj)
