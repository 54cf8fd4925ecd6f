"""Pods that wait for the same: what helps one of them helps all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from controller.allocator.claim_request import ClaimRequest
from controller.allocator.node_set import NodeSet
from controller.cache import nodes, pods
from controller.cache.keys import Key
from dra_driver.model.claim import Object, allocation


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


def class_of(
    pod: Object,
    wanted: Sequence[ClaimRequest],
    allocated: Iterable[Object],
    volumes: Sequence[Object],
) -> PodClass:
    """The class of a pod that wants these claims, beside those that are `allocated` already.
    `volumes` are node selectors of its volumes."""
    follows = [(allocation(claim) or {}).get("nodeSelector") for claim in allocated]
    selectors = [*filter(None, follows), *volumes]
    constraints = pods.node_name(pod), nodes.digest([nodes.demand(pod), selectors])
    return PodClass(tuple(each.shape for each in wanted), constraints, pod, wanted, selectors)
