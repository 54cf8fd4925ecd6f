"""Which nodes are tried for a pod after all others, because kube-scheduler refused them, or nodes
that are like them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from controller.allocating.clocks import Clocks
from controller.allocating.refusals import Likeness, lacks
from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache import nodes
from controller.cache.cache import ClusterCache
from controller.cache.keys import uid_of
from dra_driver.model.claims.claim import Object


@dataclass(frozen=True, slots=True)
class Later:
    """Nodes that are tried after all others. `guessed` ones are like refused nodes, and no reason
    says that this matters. `named` ones are like refused nodes in what the reason names, or were
    refused for a replica. `failed` ones were refused for the pod itself."""

    numbers: NodeNumbers
    guessed: NodeSet
    named: NodeSet
    failed: NodeSet

    @property
    def sets(self) -> tuple[NodeSet, NodeSet, NodeSet]:
        """In the order in which they are tried."""
        return self.guessed, self.named, self.failed

    def is_doubtful(self, node: str) -> bool:
        """Whether kube-scheduler has refused the node, or said why it would."""
        return bool(self.numbers.bit(node) & (self.named | self.failed))


class NodeOrder:
    """One instance, one thread."""

    def __init__(self, cache: ClusterCache, clocks: Clocks) -> None:
        self._cache = cache
        self._backoff = clocks.backoff
        self._refusals = clocks.refusals

    def later(self, pod: Object, now: float) -> Later:
        """The nodes that are tried last for the pod."""
        learnt = self._refusals.learnt(pod, now)
        return Later(
            self._cache.state().numbers,
            self._like(learnt.guessed),
            self._like(learnt.named) | self._known(learnt.refused),
            self._known(self._backoff.failed_nodes(uid_of(pod))),
        )

    def _known(self, names: Iterable[str]) -> NodeSet:
        return self._cache.state().numbers.set_of([n for n in names if n in self._cache.nodes])

    def _like(self, likenesses: Iterable[Likeness]) -> NodeSet:
        """The nodes that have one of these in common."""
        resources, labels = set[str](), defaultdict[str, set[str | None]](set)
        for likeness in likenesses:
            if likeness.is_resource:
                resources.add(likeness.key)
            else:
                labels[likeness.key].add(likeness.value)
        if not resources and not labels:
            return 0
        return self._cache.state().numbers.set_of(
            [
                name
                for name, node in self._cache.nodes.items()
                if any(lacks(node, resource) for resource in resources)
                or any(nodes.labels_of(node).get(key) in labels[key] for key in labels)
            ]
        )
