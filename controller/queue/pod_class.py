"""Pods that wait for the same: what helps one of them helps all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from controller.allocator.claim_request import ClaimRequest
from controller.allocator.node_set import NodeSet
from controller.cache.keys import Key
from controller.queue.fair_queue import FairQueue, Place, Rank, Turns
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True)
class PodClass:
    """Equal for pods whose claims have the same `shape`, which says packing or spreading, too, and
    that demand the same of nodes (`constraints`, hashable). `pod`, its unallocated claims and the
    node `selectors` of its volumes and of its other claims stand for all of them."""

    shape: tuple[object, ...]
    constraints: tuple[object, ...]
    pod: Object = field(compare=False)
    wanted: Sequence[ClaimRequest] = field(compare=False)
    selectors: Sequence[Object] = field(compare=False, default=())


class QueueingHints(Protocol):
    """What the queue asks about an event (kube-scheduler: QueueingHintFn)."""

    def nodes_of(self, pools: AbstractSet[str]) -> NodeSet:
        """The nodes on which the pools' devices are."""

    def helps(self, pod_class: PodClass, key: Key, nodes: NodeSet, /) -> bool:
        """Whether one of `nodes` can serve the class, of which the pod `key` comes first."""


class ClassMembers:
    """The unschedulable pods of one class, in order. Those that one event has woken already come
    back to `tried`: the same event does not wake them again."""

    def __init__(self, pod_class: PodClass, turns: Turns) -> None:
        self.pod_class = pod_class
        self._pods = FairQueue(turns)
        self._tried: dict[Key, Rank] = {}

    def add(self, key: Key, rank: Rank, *, tried: bool) -> None:
        if tried:
            self._tried[key] = rank
        else:
            self._pods.push(key, *rank)

    def remove(self, key: Key) -> None:
        self._pods.remove(key)
        self._tried.pop(key, None)

    def head(self) -> tuple[Place, Key] | None:
        """The pod that the event wakes first."""
        return self._pods.head()

    def restore(self) -> None:
        """A new event may wake all of them."""
        for key, rank in self._tried.items():
            self._pods.push(key, *rank)
        self._tried.clear()

    def __iter__(self) -> Iterator[Key]:
        yield from self._pods
        yield from self._tried

    def __len__(self) -> int:
        return len(self._pods) + len(self._tried)
