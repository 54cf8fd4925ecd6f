"""No pod waits for ever because smaller ones always come first.

The pod that is first in line, by priority and then age, and has waited for `patience` seconds, gets
a node set aside: pods behind it are given nothing there until it is served. The node is one that
could serve it if it were empty, the one with the fewest devices in use. The choice is made anew
after another `patience` seconds, when another node may have become the emptier one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.request import Wanted
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.keys import Key
from controller.queue.agenda import Rank
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True)
class SetAside:
    """`node` is kept for the pod `key`, whose rank is `rank`, since `at`."""

    node: str
    key: Key
    rank: Rank
    at: float


class Fairness:
    """One instance, one thread; at most one node is set aside. `state` is the cluster's, always
    that of the moment."""

    def __init__(self, state: State, *, patience: float) -> None:
        self._state = state
        self._patience = patience
        self._kept: SetAside | None = None
        self._empty = state.emptied()

    def kept_from(self, pod: Object) -> SetAside | None:
        """The node on which the pod may be given nothing; None for the pod it is kept for, and
        for those before it in line."""
        kept = self._kept
        if kept is None or kept.key == pods.key_of(pod) or pods.urgency(pod) < kept.rank:
            return None
        return kept

    def look_again_at(self, since: float, now: float) -> float:
        """When a pod that waits since then may be due a node, or another one."""
        return since + self._patience if now < since + self._patience else now + self._patience

    def waits(
        self,
        pod: Object,
        since: float,
        now: float,
        wanted: Sequence[Wanted],
        nodes: Collection[str],
    ) -> str | None:
        """The pod has waited `since` then and cannot be served on any of `nodes` now; gives the
        node that is free for others again, if one is."""
        key, rank, kept = pods.key_of(pod), pods.urgency(pod), self._kept
        if now < since + self._patience:
            return None
        if kept is not None:
            if kept.key != key and kept.rank <= rank:
                return None
            if kept.key == key and kept.node in nodes and now < kept.at + self._patience:
                return None
        node = self._emptiest(wanted, nodes)
        if node is not None:
            self._kept = SetAside(node, key, rank, now)
        elif kept is not None and kept.key == key:
            self._kept = None  # not even an empty node could serve it any more
        if kept is None or (self._kept is not None and self._kept.node == kept.node):
            return None
        return kept.node

    def leaves(self, key: Key) -> str | None:
        """The pod waits no longer; gives the node that was kept for it, if one was: it is free for
        others again."""
        kept = self._kept
        if kept is None or kept.key != key:
            return None
        self._kept = None
        return kept.node

    def _emptiest(self, wanted: Sequence[Wanted], nodes: Iterable[str]) -> str | None:
        for node in sorted(nodes, key=lambda name: (self._in_use(name), name)):
            if isinstance(allocate(self._empty, wanted, [node]), Allocation):
                return node
        return None

    def _in_use(self, node: str) -> int:
        found = self._state.fleet.node(node)
        return 0 if found is None else found.load
