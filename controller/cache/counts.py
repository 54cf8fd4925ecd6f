"""What claims hold and what pods take, counted as both come, change and go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from controller.allocator.device import CardKey
from controller.allocator.node_set import NodeSet
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.claim_allocations import ClaimAllocations, uid_of
from controller.cache.node_resources import NodeResources
from controller.cache.pod_index import Name, PodIndex
from controller.cache.replicas import Replicas
from dra_driver.model.claim import Object


class Counts:
    """`claims` and `known_pods` are those of the moment, by their names; the methods that begin
    with `set_` are called after these have changed. What is counted is counted by UID. Where a
    method raises, because an object cannot be read, nothing is counted otherwise than before."""

    def __init__(
        self,
        state: State,
        claims: Mapping[Name, Object],
        known_pods: Mapping[Name, Object],
    ) -> None:
        self._claims = claims
        self._pods = known_pods
        self._claim_holds = ClaimAllocations(state.holdings)
        self._rooms = NodeResources(state.numbers)
        self._replicas = Replicas()
        self.pod_index = PodIndex()

    def set_pod(self, name: Name, old: Object | None, new: Object | None) -> None:
        if new is not None:
            pods.urgency(new)  # by which it is lined up
        self.pod_index.replace(name, old, new)
        try:
            self._seat(name)
        except Exception:
            self.pod_index.replace(name, new, old)
            raise
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._rooms.set_pod(uid_of(old), None)
        self._follow(name)

    def set_other_pod(self, uid: str, pod: Object | None) -> None:
        """A pod that is not among the known ones: it takes room."""
        self._rooms.set_pod(uid, pod)

    def keep_pods(self, uids: Collection[str]) -> None:
        """These are all pods of the cluster."""
        self._rooms.keep_pods(uids)

    def set_claim(self, name: Name, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._count(name, uid_of(new))
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._count(name, uid_of(old))
            self._seat_users(name)  # what they wait for is another claim now

    def set_node(self, name: str, node: Object | None) -> None:
        self._rooms.set_node(name, node)

    def assume(self, name: Name, claim: Object) -> None:
        """Count the claim as if it were allocated so, until `forget`."""
        self._claim_holds.assume(claim)
        self._count(name, uid_of(claim))

    def forget(self, name: Name, claim: Object) -> None:
        """Count what is known of the claim."""
        if self._claim_holds.forget(uid_of(claim)):
            self._count(name, uid_of(claim))

    def nodes_with_capacity(self, pod: Object) -> NodeSet:
        """The nodes that have cpu, memory and a place left for the pod."""
        return self._rooms.nodes_with_capacity(pod)

    def cards_of_replicas(self, name: Name, pod: Object) -> Mapping[CardKey, int]:
        """By card, how many other pods of the same workload have something of it."""
        workload = pods.workload(pod)
        if workload is None:
            return {}
        if self._replicas.follow(workload):
            for each in self.pod_index.replicas(workload):
                self._follow(each)
        return self._replicas.others(name, workload)

    def _count(self, name: Name, uid: str) -> None:
        """The claim of that UID, which has or had the name, may hold something else than before."""
        claim = self._claims.get(name)
        if claim is not None and uid_of(claim) != uid:
            claim = None
        if self._claim_holds.count(uid, claim):
            self._seat_users(name)
        for pod in self.pod_index.users(name):
            self._follow(pod)

    def _seat_users(self, claim: Name) -> None:
        for pod in self.pod_index.users(claim):
            self._seat(pod)

    def _seat(self, name: Name) -> None:
        """Count what the pod asks for, as long as it waits where its claims are allocated."""
        pod = self._pods.get(name)
        if pod is not None:
            node = next(filter(None, map(self._claim_holds.node, self._claims_of(pod))), "")
            self._rooms.set_pod(uid_of(pod), pod, awaited_on=node)

    def _follow(self, name: Name) -> None:
        """Count the cards of a pod that has not ended among its workload's."""
        if not self._replicas:
            return
        pod = self._pods.get(name)
        if pod is None or pods.is_done(pod):
            self._replicas.put(name, None, frozenset)
        else:
            self._replicas.put(name, pods.workload(pod), partial(self._cards_of, pod))

    def _cards_of(self, pod: Object) -> frozenset[CardKey]:
        """By the names of the devices: their slices may be gone, and come back."""
        return frozenset(
            (hold.device.pool, card)
            for claim in self._claims_of(pod)
            for hold in self._claim_holds.of(claim)
            if (card := hold.device.card_by_name) is not None
        )

    def _claims_of(self, pod: Object) -> Iterator[Object]:
        """Those of the pod's claims that are there."""
        namespace = pod["metadata"]["namespace"]
        for name in filter(None, pods.claim_names(pod).values()):
            claim = self._claims.get((namespace, name))
            if claim is not None:
                yield claim
