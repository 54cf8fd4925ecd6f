"""No pod waits for ever because smaller ones always come first.

The pod that is first in line, by priority and then age, and has waited for `patience` seconds, gets
a node reserved: pods behind it are given nothing there until it is served. The node is one that
could serve it if it were empty, the one of whose cards the least is allocated. The choice is made
anew after another `patience` seconds, when another node may have become the emptier one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.allocator.allocate import feasible
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.node_set import NodeSet
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.keys import Key
from controller.queue.fair_queue import Rank
from controller.queue.pod_class import PodClass
from dra_driver.model.claim import Object
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

_MOST: Final = 1024  # classes of which it is remembered what was found


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """`node` is reserved for the pod `key`, whose rank is `rank`, since `at`."""

    node: str
    key: Key
    rank: Rank
    at: float


class _Found(NamedTuple):
    """The emptiest of the nodes `among` that could serve a class. It holds for this generation of
    the fleet and this epoch of the nodes' numbers."""

    versions: tuple[int, int]
    among: NodeSet
    emptiest: str | None


class StarvationGuard:
    """One instance, one thread; at most one node is reserved."""

    def __init__(self, state: State, *, patience: float) -> None:
        self._state = state
        self._patience = patience
        self._reservation: NodeReservation | None = None
        self._found: dict[PodClass, _Found] = {}
        self._empty = state.emptied()

    def reserved_against(self, pod: Object) -> NodeReservation | None:
        """The node on which the pod may be given nothing; None for the pod it is reserved for, and
        for those before it in line."""
        found = self._reservation
        if found is None or found.key == pods.key_of(pod) or pods.urgency(pod) < found.rank:
            return None
        return found

    def next_look(self, since: float, now: float) -> float:
        """When a pod that waits since then may be due a node, or another one."""
        return since + self._patience if now < since + self._patience else now + self._patience

    def waits(
        self, pod: Object, since: float, now: float, pod_class: PodClass, nodes: NodeSet
    ) -> tuple[str, ...]:
        """The pod has waited `since` then and cannot be served on any of `nodes` now; gives the
        node that is free for others again, if one is."""
        key, urgency, reserved = pods.key_of(pod), pods.urgency(pod), self._reservation
        if now < since + self._patience:
            return ()
        if reserved is not None:
            if reserved.key != key and reserved.rank <= urgency:
                return ()
            is_fresh = now < reserved.at + self._patience
            is_suitable = bool(nodes & self._state.numbers.bit(reserved.node))
            if reserved.key == key and is_suitable and is_fresh:
                return ()
        node = self._emptiest(pod_class, nodes)
        if node is not None:
            self._reservation = NodeReservation(node, key, urgency, now)
        elif reserved is not None and reserved.key == key:
            self._reservation = None  # not even an empty node could serve it any more
        if reserved is None or (self._reservation and self._reservation.node == reserved.node):
            return ()
        return (reserved.node,)

    def leaves(self, key: Key) -> tuple[str, ...]:
        """The pod waits no longer; gives the node that was reserved for it, if one was: it is free
        for others again."""
        reserved = self._reservation
        if reserved is None or reserved.key != key:
            return ()
        self._reservation = None
        return (reserved.node,)

    def _emptiest(self, pod_class: PodClass, among: NodeSet) -> str | None:
        """Found once for all pods of the class, until something is allocated or published."""
        self._state.fleet.refresh()
        versions = self._state.fleet.generation, self._state.numbers.epoch
        found = self._found.get(pod_class)
        if found is None or found.versions != versions or found.among != among:
            if len(self._found) >= _MOST:
                self._found.clear()
            found = _Found(versions, among, self._find(pod_class.wanted, among))
            self._found[pod_class] = found
        return found.emptiest

    def _find(self, wanted: Sequence[ClaimRequest], among: NodeSet) -> str | None:
        try:
            suitable = feasible(self._empty, wanted, among)
        except AllowanceSpent:
            logger.info("no node is reserved before the next look: that takes too long to find out")
            return None
        fleet = self._state.fleet
        emptiest = next(fleet.by_load.walk(suitable & fleet.everywhere), 0)
        return min(fleet.numbers.names(emptiest), default=None)
