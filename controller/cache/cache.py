"""The cluster as the watches tell it. Touched by one thread only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.device import CardKey
from controller.allocator.inventory import Inventory
from controller.allocator.node_set import NodeSet
from controller.allocator.state import State
from controller.allocator.taints import TaintRule
from controller.cache import nodes, pods
from controller.cache.counts import Counts, Name
from controller.cache.keys import Key, Subject, uid_of
from controller.cache.packed import unpacked
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors

WATCHED = (
    RESOURCE_SLICES,
    DEVICE_TAINT_RULES,
    DEVICE_CLASSES,
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    PODS,
)
RESOURCE_OF = {
    Subject.POD: PODS,
    Subject.CLAIM: RESOURCE_CLAIMS,
    Subject.TEMPLATE: RESOURCE_CLAIM_TEMPLATES,
}


_REMEMBERED: Final = 16_384  # UIDs: more than a cluster deletes while a write or a list takes

# Ends what fails with an object in it, and lets the program go on.
Isolate = Callable[[Resource, Object], AbstractContextManager[None]]


def not_isolated(_resource: Resource, _obj: Object) -> AbstractContextManager[None]:
    """What fails raises."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Changed:
    """An object that is not as it was; `old` or `new` is None where there was or is none."""

    resource: Resource
    old: Object | None
    new: Object | None

    def is_gone(self) -> bool:
        """Whether the old object is there no more, though another one may have its name."""
        return self.old is not None and (self.new is None or uid_of(self.old) != uid_of(self.new))

    def unpacked(self) -> Changed:
        """With objects that are quick to read."""
        old, new = self.old and unpacked(self.old), self.new and unpacked(self.new)
        return Changed(self.resource, old, new)


class Tombstones:
    """UIDs of what was deleted lately, so that no late answer or list brings it back."""

    def __init__(self) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        """The object is gone, by the word of its watch."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > _REMEMBERED:
            self._uids.popitem(last=False)

    def discard(self, uid: str) -> None:
        """It is there after all, by the same word: another label has hidden it."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids


class ClusterCache:
    """Objects by kind and name, and what follows from them: inventory, holdings, room on nodes.

    An older version never replaces a newer one of the same object: what a write of ours answered
    is put in at once, and the watch brings older ones after it. Nor does such an answer, or a new
    leader's list, bring back what the watch has told to be gone meanwhile: an allocation that is no
    more would hold its devices for ever. There is one object of a name at a time, and what is
    counted is counted by UID.

    `nodes` are those of the moment; `nodes_version` is another one whenever a node has come, gone
    or changed in what pods demand of it.

    What cannot be taken in, `isolate` having ended the attempt, leaves what was known of the object
    as it was: what an allocated claim held is still held.
    """

    def __init__(self, selectors: Selectors, isolate: Isolate = not_isolated) -> None:
        self._isolate = isolate
        self._objects: dict[Resource, dict[Name, Object]] = {each: {} for each in WATCHED}
        self._classes: dict[str, Object] = {}
        self.nodes: dict[str, Object] = {}
        self.nodes_version = 0
        self._inventory = Inventory(partial(isolate, RESOURCE_SLICES))
        self._state = State(self._inventory, AllocatedDevices(), self._classes, selectors)
        self._counts = Counts(self._state, self._objects[RESOURCE_CLAIMS], self._objects[PODS])
        self._gone = Tombstones()

    def replace(self, resource: Resource, items: Iterable[Object]) -> Iterator[Changed]:
        """These are all the objects of the kind. Returns what changed by that; each change is
        unpacked when it is read."""
        listed: dict[str, Object] = {}
        for each in items:
            with self._isolate(resource, each):
                listed[uid_of(each)] = each
        known = tuple(self._objects[resource].values())
        updates = [(Change.DELETED, each) for each in known if uid_of(each) not in listed]
        updates += [(Change.ADDED, each) for each in listed.values()]
        if resource is PODS:
            self._counts.resources.keep_pods(listed.keys())
        changes = [self._isolated(resource, change, each) for change, each in updates]
        return (each.unpacked() for each in changes if each is not None)

    def apply(self, resource: Resource, change: Change, obj: Object) -> Changed | None:
        """One object. Returns what changed, or None where it was known already. ADDED and DELETED
        come from the watch; what is read beside it is MODIFIED."""
        changed = self._isolated(resource, change, obj)
        return None if changed is None else changed.unpacked()

    def _isolated(self, resource: Resource, change: Change, obj: Object) -> Changed | None:
        changed: Changed | None = None
        with self._isolate(resource, obj):
            read = unpacked(obj)
            if resource is not PODS or (change is not Change.DELETED and pods.concerns_us(read)):
                return self._apply(resource, change, obj, read)
            # The cluster's other pods are none of our business, but for what they take.
            changed = self._apply(PODS, Change.DELETED, obj, read)
            self._counts.resources.set_pod(uid_of(read), None if change is Change.DELETED else read)
        return changed

    def _apply(
        self, resource: Resource, change: Change, obj: Object, read: Object
    ) -> Changed | None:
        """`read` is `obj` unpacked."""
        name, uid, known = _name(read), uid_of(read), self._objects[resource]
        old = known.get(name)
        old_read = None if old is None else unpacked(old)
        if change is Change.DELETED:
            if old_read is None or uid_of(old_read) != uid:
                return None
        else:
            if change is Change.ADDED:
                self._gone.discard(uid)
            if uid in self._gone or (old_read is not None and not is_newer(read, old_read)):
                return None
        new = None if change is Change.DELETED else obj
        _put(known, name, new)
        try:
            self._follow(resource, name, old_read, None if new is None else read)
        except Exception:
            _put(known, name, old)
            raise
        changed = Changed(resource, old, new)
        if old_read is not None and (new is None or uid_of(old_read) != uid):
            self._gone.add(uid_of(old_read))
        return changed

    def assume(self, claim: Object) -> None:
        """Count the claim as if it were allocated so, whatever is told of it, until `forget`:
        the write is under way."""
        self._counts.assume(_name(claim), claim)

    def forget(self, claim: Object) -> None:
        """From now on what is told of the claim counts."""
        self._counts.forget(_name(claim), claim)

    def state(self) -> State:
        """What the allocator decides on; always the same object, which follows each change."""
        return self._state

    def get(self, key: Key) -> Object | None:
        """What the key names."""
        found = self._objects[RESOURCE_OF[key.subject]].get(f"{key.namespace}/{key.name}")
        return None if found is None else unpacked(found)

    def everything(self) -> Iterator[Changed]:
        """All objects that are reconciled, as if they had just come."""
        for resource in RESOURCE_OF.values():
            for each in tuple(self._objects[resource].values()):
                yield Changed(resource, None, unpacked(each))

    def pods_of_template(self, key: Key) -> list[Object]:
        """The pods that name the claim template, those that have ended left out."""
        return self._alive(self._counts.index.users_of_template(f"{key.namespace}/{key.name}"))

    def nodes_with_capacity(self, pod: Object) -> NodeSet:
        """The nodes that have cpu, memory and a place left for the pod."""
        return self._counts.resources.nodes_with_capacity(pod)

    def claims_of(self, pod: Object) -> dict[str, Object] | None:
        """The pod's claims by their names in the pod; None while one is missing, being deleted
        or another pod's."""
        found: dict[str, Object] = {}
        for reference, name in pods.claim_names(pod).items():
            key = Key(Subject.CLAIM, pod["metadata"]["namespace"], name or "")
            claim = self.get(key) if name else None
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                return None
            if not pods.owns(pod, claim):
                return None
            found[reference] = claim
        return found

    def pods_of(self, claim: Object) -> list[Object]:
        """The pods that name the claim, those that have ended left out."""
        return self._alive(self._counts.index.users(_name(claim)))

    def cards_of_replicas(self, pod: Object) -> Mapping[CardKey, int]:
        """By card, how many other pods of the same workload have something of it, what is being
        written for them included; until the next change. Pods of one workload have one controller:
        a Deployment's pods of one template have their ReplicaSet, so that a new template spreads by
        itself."""
        return self._counts.cards_of_replicas(_name(pod), pod)

    def _alive(self, names: Iterable[Name]) -> list[Object]:
        found = (self._objects[PODS].get(name) for name in sorted(names))
        alive = (unpacked(pod) for pod in found if pod is not None)
        return [pod for pod in alive if not pods.is_done(pod)]

    def _follow(
        self, resource: Resource, name: Name, old: Object | None, new: Object | None
    ) -> None:
        """Learn what follows from the object. Where this raises, nothing was learnt."""
        if resource is PODS:
            self._counts.set_pod(name, old, new)
        elif resource is RESOURCE_CLAIMS:
            self._counts.set_claim(name, old, new)
        elif resource is RESOURCE_SLICES and new is not None:
            self._inventory.put(new)
        elif resource is RESOURCE_SLICES and old is not None:
            self._inventory.remove(old)
        elif resource is DEVICE_TAINT_RULES:
            self._inventory.set_rule(name, None if new is None else TaintRule.parse(new))
        elif resource is DEVICE_CLASSES:
            _put(self._classes, name, new)
        elif resource is NODES:
            self._set_node(name, old, new)

    def _set_node(self, name: str, old: Object | None, new: Object | None) -> None:
        if new is not None:
            nodes.check(new)
        self._counts.resources.set_node(name, new)
        if old is None or new is None or nodes.relevant(old) != nodes.relevant(new):
            self.nodes_version += 1
        _put(self.nodes, name, new)
        if new is None:
            self._state.numbers.trim(self.nodes.keys())


def is_newer(obj: Object, old: Object) -> bool:
    """Whether it is a later version than the old one, or a later object of its name: the versions
    of one resource compare as numbers (documented since Kubernetes 1.35)."""
    return int(obj["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])


def _put(known: dict[Any, Any], name: Any, new: object) -> None:
    if new is None:
        known.pop(name, None)
    else:
        known[name] = new


def _name(obj: Object) -> Name:
    namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)
