"""How much cpu, memory and pods each node has left, kept as nodes and pods come and go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache import pods
from controller.cache.pod_requests import NO_ROOM, Room, asked_by
from dra_driver.model.claim import Object

_REMEMBERED: Final = 64  # amounts: pods of one workload ask for the same


class _Seat(NamedTuple):
    """Where a pod is counted, and how much it asks for."""

    node: str
    asked: Room


class NodeResources:
    """All pods of the cluster count, whatever they use: where they are bound, else where they are
    about to be.

    Which nodes have room for an amount is found out once, and kept as they change.
    """

    def __init__(self, numbers: NodeNumbers) -> None:
        self.numbers = numbers
        self._epoch = numbers.epoch
        self._allocatable: dict[str, Room] = {}
        self._free: dict[str, Room] = {}
        self._seats: dict[str, _Seat] = {}
        self._roomy: OrderedDict[Room, NodeSet] = OrderedDict()

    def set_node(self, name: str, node: Object | None) -> None:
        """The node as it is now; None where it is gone. Pods may be told of before their node."""
        status = (node or {}).get("status") or {}
        allocatable = Room.of(status.get("allocatable"))
        self._add(name, allocatable.minus(self._allocatable.pop(name, NO_ROOM)))
        if node is not None:
            self._allocatable[name] = allocatable

    def set_pod(self, uid: str, pod: Object | None, *, awaited_on: str = "") -> None:
        """The pod of that UID as it is now; None where it is gone. `awaited_on` is the node where a
        pod that waits has something already."""
        old, new = self._seats.get(uid), _seat_of(pod, awaited_on)
        if new == old:
            return
        if old is not None:
            del self._seats[uid]
            self._add(old.node, old.asked)
        if new is not None:
            self._seats[uid] = new
            self._add(new.node, NO_ROOM.minus(new.asked))

    def keep_pods(self, uids: Collection[str]) -> None:
        """These are all pods of the cluster."""
        for uid in self._seats.keys() - uids:
            self.set_pod(uid, None)

    def nodes_with_capacity(self, pod: Object) -> NodeSet:
        """The nodes that can take the pod without another one's end; until the next change."""
        if self._epoch != self.numbers.epoch:
            self._epoch = self.numbers.epoch
            self._roomy.clear()
        asked = asked_by(pod)
        found = self._roomy.get(asked)
        if found is None:
            found = self.numbers.set_of(
                [node for node, free in self._free.items() if free.takes(asked)]
            )
            self._roomy[asked] = found
            if len(self._roomy) > _REMEMBERED:
                self._roomy.popitem(last=False)
        self._roomy.move_to_end(asked)
        return found

    def _add(self, node: str, more: Room) -> None:
        if more == NO_ROOM:
            return
        free = self._free.get(node, NO_ROOM).plus(more)
        if free == NO_ROOM:
            del self._free[node]
        else:
            self._free[node] = free
        bit = self.numbers.bit(node) if self._roomy else 0
        for asked, roomy in self._roomy.items():
            self._roomy[asked] = roomy | bit if free.takes(asked) else roomy & ~bit


def _seat_of(pod: Object | None, awaited_on: str) -> _Seat | None:
    if pod is None or pods.is_done(pod):
        return None
    node = pods.node_name(pod) or pods.nominated_node(pod) or awaited_on
    return _Seat(node, asked_by(pod)) if node else None
