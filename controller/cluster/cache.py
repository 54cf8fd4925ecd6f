"""The cluster as the watches tell it. Touched by one thread only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

from controller.allocator.device import CardKey
from controller.allocator.holdings import Hold, Holdings, holds_of
from controller.allocator.inventory import Inventory
from controller.allocator.node_selector import selected_name
from controller.allocator.state import State
from controller.cluster import nodes, pods
from controller.cluster.gone import Gone
from controller.cluster.pod_index import Name, PodIndex
from controller.cluster.replicas import Replicas
from controller.cluster.room import Rooms
from controller.work.agenda import Key, Subject
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claim import Object, allocation
from dra_driver.selector.selector import Selectors

WATCHED = (
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    PODS,
)


@dataclass(frozen=True, slots=True)
class Changed:
    """An object that is not as it was; `old` or `new` is None where there was or is none."""

    resource: Resource
    old: Object | None
    new: Object | None


class ClusterCache:
    """Objects by kind and name, and what follows from them: inventory, holdings, room on nodes.

    An older version never replaces a newer one of the same object: what a write of ours answered
    is put in at once, and the watch brings older ones after it. Nor does such an answer, or a new
    leader's list, bring back what the watch has told to be gone meanwhile: an allocation that is no
    more would hold its devices for ever.
    """

    def __init__(self, selectors: Selectors) -> None:
        self._objects: dict[Resource, dict[Name, Object]] = {each: {} for each in WATCHED}
        self._classes: dict[str, Object] = {}
        self._nodes: dict[str, Object] = {}
        self._nodes_version = 0
        self._holdings = Holdings()
        self._holds: dict[Name, tuple[Hold, ...]] = {}
        self._assumed: dict[Name, Object] = {}
        self._nodes_of_claims: dict[Name, str] = {}
        self._rooms = Rooms()
        self._inventory = Inventory()
        self._state = State(
            self._inventory, self._holdings, self._classes, selectors, nodes=self._nodes
        )
        self._pod_index = PodIndex()
        self._replicas = Replicas()
        self._gone = Gone()

    def replace(self, resource: Resource, items: Iterable[Object]) -> list[Changed]:
        """These are all the objects of the kind; gives what changed by that."""
        listed = {_name(each): each for each in items}
        known = self._objects[resource]
        changes = [
            change
            for name in known.keys() - listed.keys()
            if (change := self.apply(resource, Change.DELETED, known[name]))
        ]
        if resource is PODS:
            self._rooms.keep_pods(listed.keys())
        for each in listed.values():
            change = self.apply(resource, Change.ADDED, each)
            if change is not None:
                changes.append(change)
        return changes

    def apply(self, resource: Resource, change: Change, obj: Object) -> Changed | None:
        """One object; gives what changed, or None where it was known already. ADDED and DELETED are
        the watch's words; what is read beside it is MODIFIED."""
        if resource is not PODS or pods.concerns_us(obj):
            return self._apply(resource, change, obj)
        # The cluster's other pods are none of our business, but for the room that they take.
        changed = self._apply(PODS, Change.DELETED, obj)
        self._rooms.set_pod(_name(obj), None if change is Change.DELETED else obj)
        return changed

    def _apply(self, resource: Resource, change: Change, obj: Object) -> Changed | None:
        name, uid = _name(obj), obj["metadata"]["uid"]
        old = self._objects[resource].get(name)
        if change is Change.DELETED:
            if old is None or old["metadata"]["uid"] != uid:
                return None
            self._gone.add(uid)
            new = None
        else:
            if change is Change.ADDED:
                self._gone.discard(uid)
            if uid in self._gone or (old is not None and not is_newer(obj, old)):
                return None
            new = obj
        self._store(resource, name, new)
        return Changed(resource, old, new)

    def known(self, resource: Resource, obj: Object) -> Object:
        """The object as it is here already, where it is the same version; else as it is given. So
        a list of what is known takes no memory of its own."""
        found = self._objects[resource].get(_name(obj))
        return found if found is not None and _version(found) == _version(obj) else obj

    def assume(self, claim: Object) -> None:
        """Count the claim as if it were allocated so, whatever is told of it, until `forget`:
        the write is under way."""
        name = _name(claim)
        self._assumed[name] = claim
        self._count(name, claim)

    def forget(self, claim: Object) -> None:
        """From now on what is told of the claim counts."""
        name = _name(claim)
        if self._assumed.pop(name, None) is not None:
            self._count(name, self._objects[RESOURCE_CLAIMS].get(name))

    def state(self) -> State:
        """What the allocator decides on; always the same object, which follows each change."""
        return self._state

    def pod(self, key: Key) -> Object | None:
        return self._objects[PODS].get((key.namespace, key.name))

    def claim(self, key: Key) -> Object | None:
        return self._objects[RESOURCE_CLAIMS].get((key.namespace, key.name))

    def template(self, key: Key) -> Object | None:
        """A claim template of ours."""
        return self._objects[RESOURCE_CLAIM_TEMPLATES].get((key.namespace, key.name))

    def has(self, key: Key) -> bool:
        """Whether there is what the key names, or for a template a pod that waits for it."""
        match key.subject:
            case Subject.POD:
                return self.pod(key) is not None
            case Subject.CLAIM:
                return self.claim(key) is not None
        return self.template(key) is not None or any(self.pods_of_template(key))

    def pods_of_template(self, key: Key) -> Iterator[Object]:
        """The pods that name the claim template, those that have ended left out."""
        for name in self._pod_index.users_of_template((key.namespace, key.name)):
            pod = self._objects[PODS].get(name)
            if pod is not None and not pods.is_done(pod):
                yield pod

    def claims(self) -> Iterator[Object]:
        return iter(self._objects[RESOURCE_CLAIMS].values())

    def roomy_for(self, pod: Object) -> AbstractSet[str]:
        """The nodes that have cpu, memory and a place left for the pod."""
        return self._rooms.roomy_for(pod)

    @property
    def nodes(self) -> Mapping[str, Object]:
        """Nodes by name, always those of the moment."""
        return self._nodes

    @property
    def nodes_version(self) -> int:
        """Another one whenever a node has come, gone or changed in what pods demand of it."""
        return self._nodes_version

    def claims_of(self, pod: Object) -> dict[str, Object] | None:
        """The pod's claims by their names in the pod; None while one is missing, being deleted
        or another pod's."""
        found: dict[str, Object] = {}
        for reference, name in pods.claim_names(pod).items():
            key = Key(Subject.CLAIM, pod["metadata"]["namespace"], name or "")
            claim = self.claim(key) if name else None
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                return None
            if not pods.owns(pod, claim):
                return None
            found[reference] = claim
        return found

    def pods_of(self, claim: Object) -> list[Object]:
        """The pods that name the claim, those that have ended left out."""
        return self._alive(self._pod_index.users(_name(claim)))

    def cards_of_replicas(self, pod: Object) -> Mapping[CardKey, int]:
        """By card, how many other pods of the same workload have something of it, what is being
        written for them included; until the next change. Pods of one workload have one controller:
        a Deployment's pods of one template have their ReplicaSet, so that a new template spreads by
        itself."""
        workload = pods.workload(pod)
        if workload is None:
            return {}
        if self._replicas.follow(workload):
            for name in self._pod_index.replicas(workload):
                self._follow(name)
        return self._replicas.others(_name(pod), workload)

    def _alive(self, names: Collection[Name]) -> list[Object]:
        found = (self._objects[PODS].get(name) for name in sorted(names))
        return [pod for pod in found if pod is not None and not pods.is_done(pod)]

    def _store(self, resource: Resource, name: Name, new: Object | None) -> None:
        objects = self._objects[resource]
        if resource is PODS:
            self._pod_index.replace(name, objects.get(name), new)
        elif resource is RESOURCE_CLAIMS:
            self._count(name, new)
        elif resource is RESOURCE_SLICES:
            self._publish(objects.get(name), new)
        elif resource is DEVICE_CLASSES:
            _put(self._classes, name[1], new)
        elif resource is NODES:
            old = self._nodes.get(name[1])
            if old is None or new is None or nodes.relevant(old) != nodes.relevant(new):
                self._nodes_version += 1
            _put(self._nodes, name[1], new)
            self._rooms.set_node(name[1], new)
        _put(objects, name, new)
        if resource is PODS:
            self._seat(name)
            self._follow(name)

    def _seat(self, name: Name) -> None:
        """Count what the pod asks for, as long as it waits where its claims are allocated."""
        pod, node = self._objects[PODS].get(name), ""
        if pod is not None:
            claims = ((name[0], each) for each in pods.claim_names(pod).values() if each)
            node = next(filter(None, map(self._nodes_of_claims.get, claims)), "")
        self._rooms.set_pod(name, pod, awaited_on=node)

    def _follow(self, name: Name) -> None:
        """Count the cards of a pod that has not ended among its workload's."""
        if not self._replicas:
            return
        pod = self._objects[PODS].get(name)
        if pod is None or pods.is_done(pod):
            self._replicas.put(name, None, frozenset)
        else:
            self._replicas.put(name, pods.workload(pod), partial(self._cards_of, pod))

    def _cards_of(self, pod: Object) -> frozenset[CardKey]:
        """By the names of the devices: their slices may be gone, and come back."""
        namespace = pod["metadata"]["namespace"]
        return frozenset(
            (hold.device.pool, card)
            for claim in filter(None, pods.claim_names(pod).values())
            for hold in self._holds.get((namespace, claim), ())
            if (card := hold.device.card_by_name) is not None
        )

    def _publish(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._inventory.put(new)
        elif old is not None:
            self._inventory.remove(old)

    def _count(self, name: Name, new: Object | None) -> None:
        new = self._assumed.get(name, new)
        for hold in self._holds.pop(name, ()):
            self._holdings.remove(hold)
        if new is not None:
            self._holds[name] = holds_of(new)
            for hold in self._holds[name]:
                self._holdings.add(hold)
        node = _node_of(new)
        if self._nodes_of_claims.get(name) != node:
            _put(self._nodes_of_claims, name, node)
            for pod in self._pod_index.users(name):
                self._seat(pod)
        for pod in self._pod_index.users(name):
            self._follow(pod)


def matters(changed: Changed) -> bool:
    """Whether a change can make a waiting pod's verdict another one."""
    if changed.resource is not NODES or changed.old is None or changed.new is None:
        return True
    return nodes.relevant(changed.old) != nodes.relevant(changed.new)


def is_newer(obj: Object, old: Object) -> bool:
    """Whether it is a later version than the old one, or another object of the name."""
    if obj["metadata"]["uid"] != old["metadata"]["uid"]:
        return True
    # Resource versions of one object compare as numbers (documented since Kubernetes 1.35).
    return int(obj["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])


def _put(known: dict[Any, Any], name: Any, new: object) -> None:
    if new is None:
        known.pop(name, None)
    else:
        known[name] = new


def _node_of(claim: Object | None) -> str | None:
    """The node on which the claim is allocated, where that is one."""
    return selected_name((allocation(claim or {}) or {}).get("nodeSelector"))


def _name(obj: Object) -> Name:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _version(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
