"""What claims hold and what pods take, counted as both come, change and go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.allocator.allocated_devices import DeviceAllocation, allocations_of
from controller.allocator.device import CardKey
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.claims import allocated_node
from controller.cache.keys import uid_of
from controller.cache.node_resources import NodeResources
from dra_driver.model.claim import Object

Name = tuple[str, str]  # namespace and name
_NOBODY: Final[frozenset[Name]] = frozenset()
_NO_CARDS: Final[Mapping[CardKey, int]] = MappingProxyType({})


class PodIndex:
    """Which pods name a claim, or a claim template of ours."""

    def __init__(self) -> None:
        self._pods: defaultdict[tuple[str, Name], set[Name]] = defaultdict(set)

    def replace(self, name: Name, old: Object | None, new: Object | None) -> None:
        """The pod of that name is another one than before; None where there was or is none."""
        added = list(_named_by(name, new))
        for each in _named_by(name, old):
            self._pods[each].discard(name)
            if not self._pods[each]:
                del self._pods[each]
        for each in added:
            self._pods[each].add(name)

    def users(self, claim: Name) -> Collection[Name]:
        return self._pods.get(("claim", claim), _NOBODY)

    def users_of_template(self, template: Name) -> Collection[Name]:
        return self._pods.get(("template", template), _NOBODY)


def _named_by(name: Name, pod: Object | None) -> Iterator[tuple[str, Name]]:
    if pod is not None:
        for claim in filter(None, pods.claim_names(pod).values()):
            yield "claim", (name[0], claim)
        for template in pods.template_names(pod):
            yield "template", (name[0], template)


class _Replica(NamedTuple):
    """A pod that a workload made, and the cards that it uses."""

    workload: str
    cards: tuple[CardKey, ...]


class _Held(NamedTuple):
    """What a claim holds, and where, if that is one node."""

    devices: Sequence[DeviceAllocation]
    node: str | None


_NOTHING: Final = _Held((), None)


class Counts:
    """`claims` and `known_pods` are those of the moment, by their names; the methods that begin
    with `set_` are called after these have changed. What is counted is counted by UID: a claim that
    was deleted while it was being written, and the new claim of its name, each hold what they hold.
    Where a method raises, because an object cannot be read, nothing is counted otherwise than
    before."""

    def __init__(
        self, state: State, claims: Mapping[Name, Object], known_pods: Mapping[Name, Object]
    ) -> None:
        self.resources = NodeResources(state.numbers)
        self.index = PodIndex()
        self._holdings = state.holdings
        self._claims = claims
        self._pods = known_pods
        self._assumed: dict[str, Object] = {}
        self._held: dict[str, _Held] = {}
        self._replicas: dict[Name, _Replica] = {}
        self._users: defaultdict[str, Counter[CardKey]] = defaultdict(Counter)  # by workload

    def set_pod(self, name: Name, old: Object | None, new: Object | None) -> None:
        if new is not None:
            pods.urgency(new)  # by which it is lined up
        self.index.replace(name, old, new)
        if new is not None:
            try:
                self.resources.set_pod(uid_of(new), new)
            except Exception:
                self.index.replace(name, new, old)
                raise
        self._seat(name)
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self.resources.set_pod(uid_of(old), None)
        self._count_replica(name)

    def set_claim(self, name: Name, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._count(name, uid_of(new))
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._count(name, uid_of(old))
            for pod in self.index.users(name):  # what they wait for is another claim now
                self._seat(pod)
                self._count_replica(pod)

    def assume(self, name: Name, claim: Object) -> None:
        """Count the claim as if it were allocated so, until `forget`."""
        self._assumed[uid_of(claim)] = claim
        self._count(name, uid_of(claim))

    def forget(self, name: Name, claim: Object) -> None:
        """Count what is known of the claim."""
        if self._assumed.pop(uid_of(claim), None) is not None:
            self._count(name, uid_of(claim))

    def cards_of_replicas(self, name: Name, pod: Object) -> Mapping[CardKey, int]:
        """By card, how many other pods of the same workload have something of it; until the next
        change."""
        workload = pods.workload(pod)
        found = self._users.get(workload) if workload is not None else None
        if found is None:
            return _NO_CARDS
        mine = self._replicas.get(name)
        if mine is None or mine.workload != workload:
            return found
        return found - Counter(mine.cards)

    def _count(self, name: Name, uid: str) -> None:
        """The claim of that UID, which has or had the name, may hold something else than before."""
        claim = self._claims.get(name)
        if claim is not None and uid_of(claim) != uid:
            claim = None
        claim = self._assumed.get(uid, claim)
        old = self._held.get(uid, _NOTHING)
        new = _NOTHING if claim is None else _Held(allocations_of(claim), allocated_node(claim))
        if new == old:
            return
        for device in old.devices:
            self._holdings.remove(device)
        for device in new.devices:
            self._holdings.add(device)
        self._held.pop(uid, None)
        if new != _NOTHING:
            self._held[uid] = new
        for pod in self.index.users(name):
            self._seat(pod)
            self._count_replica(pod)

    def _seat(self, name: Name) -> None:
        """Count what the pod asks for, as long as it waits where its claims are allocated."""
        pod = self._pods.get(name)
        if pod is not None:
            node = next(filter(None, (held.node for held in self._held_by(pod))), "")
            self.resources.await_pod(uid_of(pod), node)

    def _count_replica(self, name: Name) -> None:
        """Count the cards of the pod among its workload's."""
        old, new = self._replicas.pop(name, None), self._replica(name)
        if new is not None:
            self._replicas[name] = new
        if new == old:
            return
        if new is not None:
            self._users[new.workload].update(new.cards)
        if old is not None:
            users = self._users[old.workload]
            users.subtract(old.cards)
            for card in old.cards:
                if not users[card]:
                    del users[card]
            if not users:
                del self._users[old.workload]

    def _replica(self, name: Name) -> _Replica | None:
        """By the names of the devices: their slices may be gone, and come back."""
        pod = self._pods.get(name)
        workload = None if pod is None or pods.is_done(pod) else pods.workload(pod)
        if pod is None or workload is None:
            return None
        held = (each.device for held in self._held_by(pod) for each in held.devices)
        cards = ((each.pool, card) for each in held if (card := each.card_by_name) is not None)
        used = tuple(dict.fromkeys(cards))
        return _Replica(workload, used) if used else None

    def _held_by(self, pod: Object) -> Iterator[_Held]:
        """What those of the pod's claims hold that are there."""
        namespace = pod["metadata"]["namespace"]
        for name in filter(None, pods.claim_names(pod).values()):
            claim = self._claims.get((namespace, name))
            if claim is not None:
                yield self._held.get(uid_of(claim), _NOTHING)
