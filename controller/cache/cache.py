"""The cluster as the watches report it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from typing import Any, Final

from controller.allocator.allocated_devices import AllocatedDevices
from controller.allocator.device import CardKey
from controller.allocator.inventory import Inventory
from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.others.drivers import OtherDrivers
from controller.allocator.others.inventory import OtherInventory
from controller.allocator.state import State
from controller.allocator.taints import TaintRule
from controller.cache import nodes, pods
from controller.cache.assigned_pods import AssignedPods
from controller.cache.claims import allocated_by_us
from controller.cache.counts import Counts, Name
from controller.cache.keys import Key, Subject, full_name, uid_of
from controller.cache.packed import unpacked
from controller.cache.pod_groups import PodGroups, Unit
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import (
    Object,
    ReadOnlyObject,
    all_results,
    claim_names,
    is_in_use,
    reserved_for,
)
from dra_driver.model.names import DRIVER
from dra_driver.selector.selector import Selectors


class _Part(Resource):
    """Objects of a kind that are watched apart from the others of that kind."""


OTHER_SLICES: Final = _Part(*(getattr(RESOURCE_SLICES, each.name) for each in fields(Resource)))
"""Slices of other drivers, which are watched once a pod asks for devices of theirs."""

WATCHED = (
    RESOURCE_SLICES,
    DEVICE_TAINT_RULES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    POD_GROUPS,
    PODS,
)
RESOURCE_OF = {
    Subject.POD: PODS,
    Subject.CLAIM: RESOURCE_CLAIMS,
    Subject.TEMPLATE: RESOURCE_CLAIM_TEMPLATES,
}


_REMEMBERED: Final = 16_384  # UIDs: more than a cluster deletes while a write or a list takes

# Ends what fails with an object in it, and lets the program go on.
Isolate = Callable[[Resource, ReadOnlyObject], AbstractContextManager[None]]


def not_isolated(_resource: Resource, _obj: ReadOnlyObject) -> AbstractContextManager[None]:
    """What fails raises."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Changed:
    """An object before and after; None where there was or is none."""

    resource: Resource
    old: Object | None
    new: Object | None

    def is_gone(self) -> bool:
        """Whether the old object was deleted. Another one may have its name."""
        return self.old is not None and (self.new is None or uid_of(self.old) != uid_of(self.new))


@dataclass(frozen=True, slots=True)
class _StoredChange:
    """An object before and after as the cache stores it, which is not quick to read."""

    old: ReadOnlyObject | None
    new: ReadOnlyObject | None

    def unpacked(self, resource: Resource) -> Changed:
        old = None if self.old is None else unpacked(self.old)
        return Changed(resource, old, None if self.new is None else unpacked(self.new))


class Tombstones:
    """UIDs of objects that were deleted lately, so that no late answer or list brings one back."""

    def __init__(self) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        """The watch reported that the object is deleted."""
        self._uids[uid] = None
        self._uids.move_to_end(uid)
        if len(self._uids) > _REMEMBERED:
            self._uids.popitem(last=False)

    def discard(self, uid: str) -> None:
        """The watch reported the object again: its labels had taken it out of the selection."""
        self._uids.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids


class ClusterCache:
    """Objects by kind and name, and what follows from them: the inventory, allocated devices, free
    resources of nodes. One thread uses it.

    An older version never replaces a newer one of the same object: the answer to a write of ours is
    taken in at once, and the watch delivers older versions after it. Nor does such an answer, or
    the list of a new leader, bring back an object that the watch reported as deleted: its
    allocation would hold its devices for ever.

    `nodes` and `namespaces` are the present ones; `nodes_version` changes with each node that
    comes, goes or changes in a field that decides which pods may run there.

    Where an object cannot be read, `isolate` ends the attempt, and the previous version stays: the
    devices of an allocated claim stay allocated. `for_scheduler`: see `Inventory`.
    """

    def __init__(
        self,
        selectors: Selectors,
        isolate: Isolate = not_isolated,
        *,
        for_scheduler: bool = False,
    ) -> None:
        self._isolate = isolate
        self._objects: dict[Resource, dict[Name, ReadOnlyObject]] = {
            kind: {} for kind in (*WATCHED, OTHER_SLICES)
        }
        self.nodes = self._objects[NODES]
        self.namespaces = self._objects[NAMESPACES]
        self.nodes_version = 0
        self._inventory = Inventory(partial(isolate, RESOURCE_SLICES), for_scheduler=for_scheduler)
        classes = self._objects[DEVICE_CLASSES]
        self._others = OtherInventory(partial(isolate, OTHER_SLICES))
        self._state = State(
            self._inventory,
            AllocatedDevices(),
            classes,
            selectors,
            others=OtherDrivers(self._others),
        )
        self._counts = Counts(self._state, self._objects[RESOURCE_CLAIMS], self._objects[PODS])
        self._gone = Tombstones()
        self.groups = PodGroups()

    def replace(
        self, resource: Resource, items: Iterable[ReadOnlyObject], *, is_served: bool = True
    ) -> Iterator[Changed]:
        """`items` are all objects of the kind; there are none of a kind that is not served. Returns
        what changed; each change is unpacked when it is read."""
        if resource is POD_GROUPS:
            self.groups.follow(is_served=is_served)
        if resource is OTHER_SLICES and not self._others.is_listed:
            self._others.is_listed = True
            self._counts.count_others()
        listed: dict[str, ReadOnlyObject] = {}
        for obj in items:
            with self._isolate(resource, obj):
                listed[uid_of(obj)] = obj
        known = tuple(self._objects[resource].values())
        updates = chain(  # no list: there may be hundreds of thousands
            ((Change.DELETED, obj) for obj in known if uid_of(obj) not in listed),
            ((Change.ADDED, obj) for obj in listed.values()),
        )
        if resource is PODS:
            self._counts.assigned.keep_pods(listed.keys())
        applied = (self._apply(resource, change, obj) for change, obj in updates)
        changes = [change for change in applied if change is not None]
        return (change.unpacked(resource) for change in changes)

    def apply(self, resource: Resource, change: Change, obj: ReadOnlyObject) -> Changed | None:
        """Take in one object. Returns what changed, or None if that version was known already.
        ADDED and DELETED come from the watch; an object that is read beside it is MODIFIED."""
        replaced = self._apply(resource, change, obj)
        return None if replaced is None else replaced.unpacked(resource)

    def _apply(
        self, resource: Resource, change: Change, obj: ReadOnlyObject
    ) -> _StoredChange | None:
        replaced: _StoredChange | None = None
        with self._isolate(resource, obj):
            read = unpacked(obj)
            if resource is not PODS or (change is not Change.DELETED and pods.concerns_us(read)):
                return self._store(resource, change, obj, read)
            # A pod without claims counts by what it takes of its node, and is not stored.
            replaced = self._store(PODS, Change.DELETED, obj, read)
            self._counts.assigned.set_pod(uid_of(read), None if change is Change.DELETED else read)
        return replaced

    def _store(
        self, resource: Resource, change: Change, obj: ReadOnlyObject, read: Object
    ) -> _StoredChange | None:
        """`read` is `obj` unpacked."""
        name, uid, objects = full_name(read), uid_of(read), self._objects[resource]
        new = None if change is Change.DELETED else obj
        stored = objects.get(name)
        old = None if stored is None else unpacked(stored)
        if new is None and (old is None or uid_of(old) != uid):
            return None
        if change is Change.ADDED:
            self._gone.discard(uid)
        if new is not None and (uid in self._gone or (old is not None and not is_newer(read, old))):
            return None
        _put(objects, name, new)
        try:
            self._follow(resource, name, old, None if new is None else read)
        except Exception:
            _put(objects, name, stored)
            raise
        if old is not None and (new is None or uid_of(old) != uid):
            self._gone.add(uid_of(old))
        return _StoredChange(stored, new)

    def _follow(
        self, resource: Resource, name: Name, old: Object | None, new: Object | None
    ) -> None:
        """Update what follows from the object. Where this raises, nothing was updated."""
        if resource is PODS:
            self._counts.set_pod(name, old, new)
            self._set_member(name, new)
        elif resource is RESOURCE_CLAIMS:
            self._counts.set_claim(name, old, new)
            self._set_users(name)
        elif resource is POD_GROUPS:
            self.groups.set_group(name, new)
        elif resource is RESOURCE_SLICES:
            _put_slice(self._inventory, old, new)
        elif resource is OTHER_SLICES:
            _put_slice(self._others, old, new)
        elif resource is DEVICE_TAINT_RULES:
            self._inventory.set_rule(name, None if new is None else TaintRule.parse(new))
            self._others.set_rule(name, new)
        elif resource is NODES:
            self._set_node(name, old, new)

    def _set_member(self, name: Name, pod: Object | None) -> None:
        is_grouped = pod is not None and pods.group_name(pod) is not None
        has_claims = is_grouped and self.claims_of(pod or {}) is not None
        self.groups.set_pod(name, pod, has_claims=has_claims)

    def _set_users(self, claim: Name) -> None:
        """The members of groups that name the claim may have all their claims now, or lack one."""
        for user in filter(self.groups.is_member, self._counts.index.users(claim)):
            self._set_member(user, unpacked(self._objects[PODS][user]))

    def _set_node(self, name: Name, old: Object | None, new: Object | None) -> None:
        if new is not None:
            nodes.check(new)
        self._counts.assigned.set_node(name, new)
        if old is None or new is None or nodes.relevant(old) != nodes.relevant(new):
            self.nodes_version += 1
        if new is None:
            self._state.numbers.trim(self.nodes.keys())

    def assume(self, claim: Object) -> None:
        """Count the claim as allocated so, whatever the watch reports, until `forget`: its write is
        under way."""
        self._counts.assume(full_name(claim), claim)

    def forget(self, claim: Object) -> None:
        """Count the claim as the watch reported it."""
        self._counts.forget(full_name(claim), claim)

    def state(self) -> State:
        """What the allocator decides on: one object, which changes with the cluster."""
        return self._state

    def nodes_of_devices(self, claim: Object) -> set[str]:
        """The nodes of the devices that the claim has; of other drivers', those that are known."""
        nodes: set[str] = set()
        for result in all_results(claim):
            if result.driver == DRIVER:
                nodes.update(filter(None, [self._inventory.node_of(result.pool)]))
            else:
                nodes.update(self._others.nodes_of((result.driver, result.pool)))
        return nodes

    def get(self, key: Key) -> Object | None:
        """The object that the key names."""
        stored = self._objects[RESOURCE_OF[key.subject]].get(f"{key.namespace}/{key.name}")
        return None if stored is None else unpacked(stored)

    def present(self, key: Key, uid: str) -> Object | None:
        """The object that the key names, if it has that UID. None if the object that had it was
        deleted: another one may have its name."""
        obj = self.get(key)
        return obj if obj is not None and uid_of(obj) == uid else None

    def unfinished(self) -> Iterator[Changed]:
        """All objects that may need a step, as new ones. Claims in use and their running pods, of
        which a cluster has the most, need none: each would keep the first waiting pod waiting. But
        where this controller allocates, claims in use that others allocated do."""
        for resource in RESOURCE_OF.values():
            for stored in tuple(self._objects[resource].values()):
                obj = unpacked(stored)
                if resource is RESOURCE_CLAIMS and self._is_finished(obj):
                    continue
                if resource is not PODS or not self._counts.is_served(obj):
                    yield Changed(resource, None, obj)

    def _is_finished(self, claim: Object) -> bool:
        return is_in_use(claim) and (self._inventory.for_scheduler or allocated_by_us(claim))

    def claims_in_use(self) -> Iterator[Key]:
        """Those that somebody has reserved."""
        for stored in tuple(self._objects[RESOURCE_CLAIMS].values()):
            if is_in_use(claim := unpacked(stored)):
                yield Key.of_claim(claim)

    def pods_of_template(self, key: Key) -> list[Object]:
        """The pods that name the claim template, those that have ended left out."""
        return self._alive(self._counts.index.users_of_template(f"{key.namespace}/{key.name}"))

    @property
    def assigned(self) -> AssignedPods:
        """The pods on nodes, and what they take there."""
        return self._counts.assigned

    def allocated_share(self, nodes: NodeSet, more: Mapping[str, int]) -> int:
        """How much cpu and memory of these nodes is requested, in percent, with `more` of them."""
        return self._counts.assigned.usage().resources.allocated_share(nodes, more)

    def claims_of(self, pod: Object) -> dict[str, Object] | None:
        """The pod's claims by their names in the pod; None while one is missing, being deleted
        or another pod's."""
        claims: dict[str, Object] = {}
        for reference, name in claim_names(pod).items():
            key = Key(Subject.CLAIM, pod["metadata"]["namespace"], name or "")
            claim = self.get(key) if name else None
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                return None
            if not pods.owns(pod, claim):
                return None
            claims[reference] = claim
        return claims

    def pods_of(self, claim: Object) -> list[Object]:
        """The pods that name the claim, those that have ended left out."""
        return self._alive(self._counts.index.users(full_name(claim)))

    def reserving(self, claim: Object) -> Iterator[Object]:
        """The pods that have reserved the claim."""
        for user in reserved_for(claim):
            key = Key(Subject.POD, claim["metadata"]["namespace"], user["name"])
            pod = self.present(key, user["uid"])
            if pod is not None:
                yield pod

    def unit_of(self, pod: Object) -> Unit:
        """The gang that the pod is a member of, or the pod alone."""
        group = self.groups.group_of(pod)
        if group is None or not group.is_gang:
            return Unit(uid_of(pod), (pod,))
        members = map(self.get, self.groups.waiting_members(group.name))
        present = tuple(pod for pod in members if pod is not None)
        return Unit(group.uid, present, group.is_whole)

    def unit_uid(self, pod: Object) -> str:
        """The UID of the pod's unit; the members of a gang are not read for it."""
        group = self.groups.group_of(pod)
        return uid_of(pod) if group is None or not group.is_gang else group.uid

    def cards_of_replicas(self, pod: Object) -> Mapping[CardKey, int]:
        """By card, how many other pods of the same workload use it, pending writes included; until
        the next change. A workload is one controller: pods of a Deployment have the ReplicaSet of
        their template, so that a new template spreads by itself."""
        return self._counts.cards_of_replicas(full_name(pod), pod)

    def _alive(self, names: Iterable[Name]) -> list[Object]:
        """The pods of these names, those that have ended left out."""
        stored = (self._objects[PODS].get(name) for name in sorted(names))
        present = (unpacked(pod) for pod in stored if pod is not None)
        return [pod for pod in present if not pods.is_done(pod)]


def _put_slice(
    inventory: Inventory | OtherInventory, old: Object | None, new: Object | None
) -> None:
    if new is not None:
        inventory.put(new)
    elif old is not None:
        inventory.remove(old)


def is_newer(obj: Object, old: Object) -> bool:
    """Whether the object is a later version than the old one, or a later object of that name:
    resourceVersions of one resource compare as numbers (documented since Kubernetes 1.35)."""
    return int(obj["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])


def _put(known: dict[Any, Any], name: Any, new: object) -> None:
    if new is None:
        known.pop(name, None)
    else:
        known[name] = new
