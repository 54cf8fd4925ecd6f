"""What claims hold and what pods take, counted as both come, change and go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from controller.allocator.allocated_devices import (
    DeviceAllocation,
    allocations_of,
    allocations_of_others,
)
from controller.allocator.device import CardKey
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.assigned_pods import AssignedPods
from controller.cache.claims import allocated_node
from controller.cache.keys import uid_of
from controller.cache.packed import unpacked
from dra_driver.model.claims.claim import Object, ReadOnlyObject, allocation, claim_names

Name = str  # namespace/name, as client-go names what it caches
_NOBODY: Final[frozenset[Name]] = frozenset()
_NO_CARDS: Final[Mapping[CardKey, int]] = MappingProxyType({})


class PodIndex:
    """Names of pods by the claims and the templates of ours that they name, and by what made
    them."""

    def __init__(self) -> None:
        self._pods: defaultdict[str, set[Name]] = defaultdict(set)

    def replace(self, name: Name, old: Object | None, new: Object | None) -> None:
        """The pod of that name changed; None where there was or is none."""
        added = [] if new is None else list(_index_values(new))
        for value in () if old is None else _index_values(old):
            self._pods[value].discard(name)
            if not self._pods[value]:
                del self._pods[value]
        for value in added:
            self._pods[value].add(name)

    def users(self, claim: Name) -> Iterable[Name]:
        return self._pods.get(f"claim {claim}", _NOBODY)

    def users_of_template(self, template: Name) -> Iterable[Name]:
        return self._pods.get(f"template {template}", _NOBODY)

    def replicas(self, workload: str) -> Iterable[Name]:
        return self._pods.get(f"workload {workload}", _NOBODY)


def _index_values(pod: Object) -> Iterator[str]:
    for claim in _claims_of(pod):
        yield f"claim {claim}"
    for template in pods.template_names(pod):
        yield f"template {pod['metadata']['namespace']}/{template}"
    if workload := pods.workload(pod):
        yield f"workload {workload}"


def _claims_of(pod: Object) -> Iterator[Name]:
    for claim in filter(None, claim_names(pod).values()):
        yield f"{pod['metadata']['namespace']}/{claim}"


class _Replicas:
    """The cards that the pods of one workload use, and how many pods use each."""

    def __init__(self) -> None:
        self.by_pod: dict[Name, tuple[CardKey, ...]] = {}
        self.users: Counter[CardKey] = Counter()

    def put(self, name: Name, cards: tuple[CardKey, ...]) -> None:
        for card in self.by_pod.pop(name, ()):
            self.users[card] -= 1
            if not self.users[card]:
                del self.users[card]
        if cards:
            self.by_pod[name] = cards
            self.users.update(cards)


class Counts:
    """`claims` and `known_pods` are those of the moment, by their names; the methods that begin
    with `set_` are called after these have changed. A claim counts by its UID: one that was deleted
    while it was being written, and the new claim of its name, each hold what they hold. Where a
    method raises, because an object cannot be read, the counts stay as they were."""

    def __init__(
        self,
        state: State,
        claims: Mapping[Name, ReadOnlyObject],
        known_pods: Mapping[Name, ReadOnlyObject],
    ) -> None:
        self.assigned = AssignedPods(state.numbers)
        self.index = PodIndex()
        self._allocated = state.allocated
        self._others = state.others.allocated
        self._counts_others = False
        self._claims = claims
        self._pods = known_pods
        self._assumed: dict[str, Object] = {}
        self._replicas: dict[str, _Replicas] = {}  # of the workloads that were asked for

    def set_pod(self, name: Name, old: Object | None, new: Object | None) -> None:
        if new is not None:
            pods.urgency(new)  # the scheduling queue sorts by it
        self.index.replace(name, old, new)
        if new is not None:
            try:
                self.assigned.set_pod(uid_of(new), new, self._assumed_node(new))
            except Exception:
                self.index.replace(name, new, old)
                raise
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self.assigned.set_pod(uid_of(old), None)
        for workload in {pods.workload(pod) for pod in (old, new) if pod is not None}:
            self._count_replica(name, workload)

    def set_claim(self, name: Name, old: Object | None, new: Object | None) -> None:
        before, after = self._unless_assumed(old), self._unless_assumed(new)
        is_gone = old is not None and (new is None or uid_of(old) != uid_of(new))
        self._recount(name, before, after, is_gone=is_gone)

    def assume(self, name: Name, claim: Object) -> None:
        """Count the claim as if it were allocated so, until `forget`."""
        before = self._counted(name, uid_of(claim))
        self._assumed[uid_of(claim)] = claim
        self._recount(name, before, claim)

    def forget(self, name: Name, claim: Object) -> None:
        """Count the claim as the watch reported it."""
        before = self._assumed.pop(uid_of(claim), None)
        if before is not None:
            self._recount(name, before, self._counted(name, uid_of(claim)))

    def count_others(self) -> None:
        """Count what claims have of other drivers' devices from now on, too."""
        self._counts_others = True
        stored = map(unpacked, self._claims.values())
        claims = filter(None, map(self._unless_assumed, stored))
        for claim in (*self._assumed.values(), *claims):
            for device in allocations_of_others(claim):
                self._others.add(device)

    def is_served(self, pod: Object) -> bool:
        """Whether the pod is bound, and all its claims are allocated where it is."""
        node = pods.node_name(pod)
        claims = [self._claim(name) for name in _claims_of(pod)]
        return bool(node) and all(
            claim is not None and allocation(claim) and allocated_node(claim) in {node, None}
            for claim in claims
        )

    def cards_of_replicas(self, name: Name, pod: Object) -> Mapping[CardKey, int]:
        """By card, how many other pods of the same workload have something of it; until the next
        change."""
        workload = pods.workload(pod)
        names = self.index.replicas(workload) if workload is not None else ()
        if workload is None or not names:
            return _NO_CARDS
        if workload not in self._replicas:
            self._replicas[workload] = _Replicas()
            for replica in names:
                self._count_replica(replica, workload)
        replicas = self._replicas[workload]
        mine = replicas.by_pod.get(name)
        return replicas.users - Counter(mine) if mine else replicas.users

    def _unless_assumed(self, claim: Object | None) -> Object | None:
        return None if claim is None or uid_of(claim) in self._assumed else claim

    def _counted(self, name: Name, uid: str) -> Object | None:
        """The claim of that UID as it counts; None where it holds nothing."""
        claim = self._claim(name)
        is_known = claim is not None and uid_of(claim) == uid
        return self._assumed.get(uid, claim if is_known else None)

    def _recount(
        self, name: Name, before: Object | None, after: Object | None, *, is_gone: bool = False
    ) -> None:
        old, new = _devices(before), _devices(after)
        if self._counts_others:
            self._recount_others(before, after)
        if old != new:
            for device in old:
                self._allocated.remove(device)
            for device in new:
                self._allocated.add(device)
        elif not is_gone and _node(before) == _node(after):
            return
        for user in self.index.users(name):
            pod = unpacked(self._pods[user])
            if not pods.node_name(pod):
                self.assigned.set_pod(uid_of(pod), pod, self._assumed_node(pod))
            self._count_replica(user, pods.workload(pod))

    def _recount_others(self, before: Object | None, after: Object | None) -> None:
        old = () if before is None else allocations_of_others(before)
        new = () if after is None else allocations_of_others(after)
        if old != new:
            for device in old:
                self._others.remove(device)
            for device in new:
                self._others.add(device)

    def _assumed_node(self, pod: Object) -> str:
        """Where the pod's claims are allocated; empty if nowhere."""
        if pods.node_name(pod):
            return ""  # the node that it is bound to counts
        return next(filter(None, map(allocated_node, self._claims_of(pod))), "")

    def _count_replica(self, name: Name, workload: str | None) -> None:
        """Count the cards of the pod among its workload's, by the names of the devices: their
        slices may be gone, and come back."""
        replicas = self._replicas.get(workload or "")
        if workload is None or replicas is None:
            return
        stored = self._pods.get(name)
        pod = None if stored is None else unpacked(stored)
        cards: dict[CardKey, None] = {}
        if pod is not None and pods.workload(pod) == workload and not pods.is_done(pod):
            for claim in self._claims_of(pod):
                for held in allocations_of(claim):
                    if (card := held.device.card_by_name) is not None:
                        cards[held.device.pool, card] = None
        replicas.put(name, tuple(cards))
        if not self.index.replicas(workload):
            del self._replicas[workload]

    def _claims_of(self, pod: Object) -> Iterator[Object]:
        """Those of the pod's claims that are there, as they count."""
        for claim in map(self._claim, _claims_of(pod)):
            if claim is not None:
                yield self._assumed.get(uid_of(claim), claim)

    def _claim(self, name: Name) -> Object | None:
        """The claim of that name as the watch reported it."""
        stored = self._claims.get(name)
        return None if stored is None else unpacked(stored)


def _devices(claim: Object | None) -> tuple[DeviceAllocation, ...]:
    return () if claim is None else allocations_of(claim)


def _node(claim: Object | None) -> str | None:
    return None if claim is None else allocated_node(claim)
