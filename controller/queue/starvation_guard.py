"""Reserves a node for the pod that waits longest, so that smaller pods do not starve it.

The first pod in line, by priority and then age, that has waited for `patience` seconds gets a node
reserved: no pod behind it is allocated devices there until it is served. The reserved node could
serve the pod if the node were empty; of all such nodes it has the least allocated. The choice is
repeated after another `patience` seconds, because another node may have less allocated by then.

For a group of pods, which its first pod stands for, it is a set of nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.allocator.allocate import feasible
from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.packing.policy import BINPACK, Policy
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.keys import Key
from controller.queue.arrival_order import ArrivalOrder, Rank
from controller.queue.queueing_hints import PodClass
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

_EMPTIEST_FIRST: Final = Policy(nodes=Packing.SPREAD).for_nodes
_LIMIT: Final = 1024  # classes whose emptiest node is remembered


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """`nodes` are reserved since `at` for the pod `key` with the given rank."""

    nodes: tuple[str, ...]
    key: Key
    rank: Rank
    at: float


class _Emptiest(NamedTuple):
    """Which of the nodes `among` could serve a class and has the least allocated, at this
    generation of the fleet and this epoch of node numbers."""

    versions: tuple[int, int]
    among: NodeSet
    node: str | None


class StarvationGuard:
    """One instance, one thread; nodes are reserved for one pod, or group, at a time."""

    def __init__(
        self, state: State, order: ArrivalOrder, *, patience: float, policy: Policy = BINPACK
    ) -> None:
        self._state = state
        self._order = order
        self._policy = policy
        self._empty = state.emptied()
        self._patience = patience
        self._reservation: NodeReservation | None = None
        self._emptiest: dict[PodClass, _Emptiest] = {}

    def reserved_against(self, pod: Object) -> NodeReservation | None:
        """The reservation that the pod must respect: it is for a pod before this one in line."""
        present = self._reservation
        if present is None:
            return None
        key = pods.key_of(pod)
        is_before = key == present.key or self._order.rank(key, pod) < present.rank
        return None if is_before else present

    def next_check(self, since: float, now: float) -> float:
        """When a pod that waits since then may get a node reserved, or another node."""
        return since + self._patience if now < since + self._patience else now + self._patience

    def reserve(
        self, pod: Object, since: float, now: float, pod_class: PodClass, nodes: NodeSet
    ) -> tuple[str, ...]:
        """Reserve one of `nodes` if the pod, which waits since then, is due one. Returns the node
        that is not reserved any longer, if there is one."""

        def find() -> tuple[str, ...]:
            node = self._emptiest_node(pod_class, nodes)
            return () if node is None else (node,)

        return self._reserve(pod, since, now, nodes, find)

    def reserve_set(
        self, pod: Object, since: float, now: float, find: Callable[[], tuple[str, ...]]
    ) -> tuple[str, ...]:
        """The same for the group that the pod stands for, and the nodes that `find` returns: none
        if no nodes could serve it."""
        return self._reserve(pod, since, now, self._state.fleet.all_nodes, find)

    def _reserve(
        self,
        pod: Object,
        since: float,
        now: float,
        suitable: NodeSet,
        find: Callable[[], tuple[str, ...]],
    ) -> tuple[str, ...]:
        key, old = pods.key_of(pod), self._reservation
        rank = self._order.rank(key, pod)
        if now < since + self._patience or not self._may_choose(key, rank, suitable, now):
            return ()
        if nodes := find():
            self._reservation = NodeReservation(nodes, key, rank, now)
        elif old is not None and old.key == key:
            self._reservation = None  # not even empty nodes could serve the pod any longer
        still = () if self._reservation is None else self._reservation.nodes
        return () if old is None else tuple(each for each in old.nodes if each not in still)

    def _may_choose(self, key: Key, rank: Rank, nodes: NodeSet, now: float) -> bool:
        """Whether a node may be chosen for the pod: none is reserved, or one for a pod behind it,
        or its own was chosen long ago or cannot serve it any longer."""
        present = self._reservation
        if present is None:
            return True
        if present.key != key:
            return rank < present.rank
        reserved = self._state.numbers.set_of(present.nodes)
        is_suitable = not reserved & ~nodes
        return now >= present.at + self._patience or not is_suitable

    def clear(self) -> None:
        """Reserve no node."""
        self._reservation = None

    def release(self, key: Key) -> tuple[str, ...]:
        """The pod waits no longer. Returns the nodes that were reserved for it."""
        old = self._reservation
        if old is None or old.key != key:
            return ()
        self._reservation = None
        return old.nodes

    def _emptiest_node(self, pod_class: PodClass, among: NodeSet) -> str | None:
        """The node of `among` that could serve the class and has the least allocated; None if there
        is none. It is found once for a class, until something is allocated or published."""
        fleet = self._state.fleet
        fleet.refresh()
        versions = fleet.generation, self._state.numbers.epoch
        known = self._emptiest.get(pod_class)
        if known is None or known.versions != versions or known.among != among:
            if len(self._emptiest) >= _LIMIT:
                self._emptiest.clear()
            known = _Emptiest(versions, among, self._find_emptiest(pod_class, among))
            self._emptiest[pod_class] = known
        return known.node

    def _find_emptiest(self, pod_class: PodClass, among: NodeSet) -> str | None:
        try:
            suitable = feasible(self._empty, pod_class.wanted, among, policy=self._policy)
        except AllowanceSpent:
            logger.info("no node is reserved before the next check: the search takes too long")
            return None
        fleet = self._state.fleet
        levels = fleet.levels(_EMPTIEST_FIRST)
        emptiest = next(levels.walk(suitable & fleet.all_nodes), 0)
        return min(fleet.numbers.names(emptiest), default=None)
