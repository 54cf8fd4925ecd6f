"""A cluster without DRA in the allocator's terms: devices are the cards in nodes' annotations, and
what pods hold of them is what agents report and what pods' own annotations say.

It fills the same `State` as `controller.cache` does from ResourceSlices and claims. Not safe for
several threads: callers hold a lock around each use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from controller.allocator.allocated_devices import AllocatedDevices, DeviceAllocation
from controller.allocator.device import CardKey
from controller.allocator.inventory import Inventory
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.cache import Tombstones
from controller.cache.keys import uid_of
from controller.extender.claim_for_limits import CLASSES
from controller.extender.devices import slice_of
from controller.extender.limit_request import concerns_us
from controller.extender.node_allocations import BoundPod, holds_on, kubelet_uid
from dra_driver.asks.limits import Pod
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import CardKind, NodeCard, parse_cards
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import ANNOTATION_CARDS, pool_name
from dra_driver.model.profile import profile_size
from dra_driver.selector.selector import Selectors


@dataclass(slots=True)
class _Node:
    """`published` is the text of the annotation, `problem` why it cannot be read. `ended` are UIDs
    of ended pods, as the agent has them."""

    published: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cards: tuple[NodeCard, ...] = ()
    kinds: frozenset[CardKind] = frozenset()
    profiles: tuple[str, ...] = ()
    problem: str = ""
    bound: dict[str, BoundPod] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    holds: list[DeviceAllocation] = field(default_factory=list)


class AnnotatedCluster:
    """Nodes, bound pods and binds in flight. Watch events go to `put_…` and `drop_…`, binds in
    flight to `assume`."""

    def __init__(self) -> None:
        self._inventory = Inventory()
        self._holdings = AllocatedDevices()
        self._state = State(self._inventory, self._holdings, CLASSES, Selectors())
        self._nodes: dict[str, _Node] = {}
        self._bound: dict[str, BoundPod] = {}  # by UID, as in their nodes
        self._assumed: set[str] = set()
        self._gone = Tombstones()

    @property
    def version(self) -> int:
        """Changes whenever other pods may fit."""
        self._state.refresh()
        return self._state.fleet.generation

    def state(self) -> State:
        """What the allocator decides on: one object, which changes with the cluster."""
        return self._state

    def nodes(self) -> tuple[str, ...]:
        """The names of all known nodes."""
        return tuple(self._nodes)

    def cards(self, node: str) -> tuple[NodeCard, ...]:
        """The last report of the node's agent; empty where it could not be read."""
        known = self._nodes.get(node)
        return known.cards if known else ()

    def profiles(self, node: str) -> tuple[str, ...]:
        """The names of the DRS profiles that cards of the node have, the smallest first."""
        known = self._nodes.get(node)
        return known.profiles if known else ()

    def card_kinds(self, labels: Mapping[str, str]) -> frozenset[CardKind]:
        """Of the nodes with these labels whose agents have reported their cards."""
        wanted = labels.items()
        kinds = [node.kinds for node in self._nodes.values() if wanted <= node.labels.items()]
        return frozenset().union(*kinds)

    def put_node(self, node: Object) -> None:
        """The node (core/v1) is new or has changed. Its cards are in an annotation."""
        name = node["metadata"]["name"]
        text = (node["metadata"].get("annotations") or {}).get(ANNOTATION_CARDS)
        known = self._nodes.setdefault(name, _Node())
        known.labels = node["metadata"].get("labels") or {}
        if text == known.published:
            return
        known.published, known.cards, known.problem = text, (), ""
        published = slice_of(name, ())
        if text is None:
            self._inventory.remove(published)
        else:
            try:
                cards = parse_cards(text)
                published, known.cards = slice_of(name, cards), cards
            except InvalidValue as error:
                known.problem = str(error)
            self._inventory.put(published)
        known.kinds = frozenset(map(CardKind.of, known.cards))
        profiles = {name for kind in known.kinds for name in kind.profiles}
        known.profiles = tuple(sorted(profiles, key=lambda name: (profile_size(name), name)))
        self._count(name)

    def drop_node(self, name: str) -> None:
        """The node was deleted. Pods that are bound to it still hold their cards."""
        known = self._nodes.get(name)
        if known is not None:
            self.put_node({"metadata": {"name": name}})
            self._forget_if_empty(name)

    def learn_pod(self, pod: Object) -> None:
        """A pod that was read by a call. It is ignored if its end was seen before: it would hold
        its cards for ever."""
        if uid_of(pod) not in self._gone:
            self.put_pod(pod)

    def put_pod(self, pod: Object) -> None:
        """The pod is new or has changed. It counts while it is bound and has not ended."""
        if not concerns_us(pod) or not pods.node_name(pod):
            return
        if pods.is_done(pod):
            self._end(uid_of(pod), pods.node_name(pod), kubelet_uid(pod))
            return
        bound_pod = BoundPod.parse(pod)
        if bound_pod is not None:
            self._place(bound_pod)

    def drop_pod(self, uid: str) -> None:
        """The pod was deleted."""
        self._gone.add(uid)
        bound_pod = self._bound.get(uid)
        if bound_pod is not None:
            self._end(uid, bound_pod.node, bound_pod.kubelet_uid)

    def cards_of_replicas(self, pod: Pod) -> Mapping[CardKey, int]:
        """The cards that other pods of the same workload are placed on, with how many are on each:
        what spreads keeps away from them."""
        workload = pods.workload(pod)
        if workload is None:
            return {}
        return Counter(
            (pool_name(bound_pod.node), str(card))
            for bound_pod in self._bound.values()
            if bound_pod.workload == workload and bound_pod.uid != uid_of(pod)
            for card in bound_pod.cards
        )

    def placed_by_others(self) -> Mapping[str, str]:
        """By UID, ``namespace/name`` of the bound pods that no extender has chosen cards for, on
        nodes that an agent reports: the others are another device plugin's. No scheduler places
        static pods, so those are left out."""
        return {
            uid: bound_pod.name
            for uid, bound_pod in self._bound.items()
            if not bound_pod.cards and not bound_pod.is_mirror
            if self._nodes[bound_pod.node].published is not None
        }

    def pods(self) -> frozenset[str]:
        """UIDs of the bound pods that hold devices."""
        return frozenset(self._bound.keys() - self._assumed)

    def has_pod(self, uid: str) -> bool:
        """Whether it is one of `pods`."""
        return uid in self._bound and uid not in self._assumed

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod counts as bound, and no watch event has confirmed it yet."""
        return uid in self._assumed

    def assume(self, bound_pod: BoundPod) -> None:
        """Count the pod as bound until a watch event confirms it, or `forget`."""
        self._place(bound_pod)
        self._assumed.add(bound_pod.uid)

    def forget(self, uid: str) -> None:
        """The bind has failed. Does nothing for a pod that is bound."""
        if uid in self._assumed:
            self._remove(uid)

    @contextmanager
    def without(self, uid: str) -> Iterator[None]:
        """Within it the pod is not assumed: kube-scheduler may ask again for the same pod."""
        bound_pod = self._bound[uid] if uid in self._assumed else None
        self.forget(uid)
        try:
            yield
        finally:
            if bound_pod is not None:
                self.assume(bound_pod)

    def _place(self, bound_pod: BoundPod) -> None:
        """Count the pod on its node, and nowhere else."""
        uid, node = bound_pod.uid, bound_pod.node
        before = self._bound.get(uid, bound_pod)
        if before.node != node:
            self._remove(uid)
        self._assumed.discard(uid)
        self._bound[uid] = bound_pod
        known = self._nodes.setdefault(node, _Node())
        if known.bound.get(uid) != bound_pod:
            known.bound[uid] = bound_pod
            self._count(node)

    def _end(self, uid: str, node: str, reported_uid: str) -> None:
        """The pod has ended on the node, whose agent knows it by `reported_uid`."""
        self._gone.add(uid)
        self._remove(uid)
        known = self._nodes.get(node)
        if known is not None and reported_uid:
            known.ended.add(reported_uid)
            self._count(node)

    def _remove(self, uid: str) -> None:
        self._assumed.discard(uid)
        bound_pod = self._bound.pop(uid, None)
        if bound_pod is not None:
            del self._nodes[bound_pod.node].bound[uid]
            self._count(bound_pod.node)
            self._forget_if_empty(bound_pod.node)

    def _count(self, name: str) -> None:
        """What is held on the node, anew: its report or its pods have changed."""
        known = self._nodes[name]
        # An agent reports an ended pod until it has released the devices.
        known.ended &= {held.pod for card in known.cards for held in card.held}
        # A pod that is here has not ended: the mirror pod that ended was another one of the same
        # static pod, or not a kubelet's.
        known.ended -= {bound_pod.kubelet_uid for bound_pod in known.bound.values()}
        for hold in known.holds:
            self._holdings.remove(hold)
        known.holds, unknown = holds_on(name, known.cards, known.bound.values(), known.ended)
        for hold in known.holds:
            self._holdings.add(hold)
        problem = known.problem
        if unknown and not problem:
            problem = f"which cards {', '.join(unknown)} has is not reported yet"
        self._inventory.withhold(pool_name(name), problem)

    def _forget_if_empty(self, name: str) -> None:
        known = self._nodes[name]
        if known.published is None and not known.bound:
            del self._nodes[name]
            self._state.numbers.trim(self._nodes.keys())
