"""Which nodes are tried for a pod after all others, because kube-scheduler refused them, or nodes
that are like them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.allocating.clocks import Clocks
from controller.allocating.refusals import Label, Learnt, lacks
from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache import nodes
from controller.cache.cache import ClusterCache
from controller.cache.keys import uid_of
from dra_driver.model.claims.claim import Object


@dataclass(frozen=True, slots=True)
class Later:
    """`sets` of nodes that are tried after all others, in this order. kube-scheduler has refused
    the `doubtful` nodes, or said why it would."""

    numbers: NodeNumbers
    sets: tuple[NodeSet, ...]
    doubtful: NodeSet

    def is_doubtful(self, node: str) -> bool:
        return bool(self.numbers.bit(node) & self.doubtful)


class NodeOrder:
    """One instance, one thread."""

    def __init__(self, cache: ClusterCache, clocks: Clocks) -> None:
        self._cache = cache
        self._backoff = clocks.backoff
        self._refusals = clocks.refusals

    def later(self, pod: Object, now: float) -> Later:
        """The nodes that are tried last for the pod."""
        learnt = self._refusals.learnt(pod, now)
        peers = self._nodes_of_replicas(pod) if learnt.apart else Counter[str]()
        taken = self._known(peers) if nodes.HOSTNAME in learnt.apart else 0
        lacking = self._that(learnt.lacking, lambda node: _lacks_any(node, learnt.lacking))
        failed = self._known(self._backoff.failed_nodes(uid_of(pod)))
        sets = (
            self._with_labels(learnt.guessed),
            *self._by_replicas(learnt, peers),
            self._with_labels(learnt.together),
            self._known(learnt.nodes),
            taken,
            lacking,
            failed,
        )
        numbers = self._cache.state().numbers
        return Later(numbers, tuple(filter(None, sets)), taken | lacking | failed)

    def _by_replicas(self, learnt: Learnt, peers: Counter[str]) -> Iterator[NodeSet]:
        """For each label over whose values replicas are spread, the nodes of the values by their
        replicas: those with the fewest replicas are left out, as they come first."""
        for key in sorted(learnt.apart - {nodes.HOSTNAME}):
            by_value, replicas = defaultdict[str | None, list[str]](list), Counter[str | None]()
            for name, node in self._cache.nodes.items():
                value = nodes.labels_of(node).get(key)
                by_value[value].append(name)
                replicas[value] += peers[name]
            for count in sorted(set(replicas.values()))[1:]:
                values = [value for value in by_value if replicas[value] == count]
                yield self._known(name for value in values for name in by_value[value])

    def _nodes_of_replicas(self, pod: Object) -> Counter[str]:
        """How many cards replicas of the pod have on each node."""
        inventory, counted = self._cache.state().inventory, Counter[str]()
        for (pool, _), users in self._cache.cards_of_replicas(pod).items():
            counted[inventory.node_of(pool) or ""] += users
        return counted

    def _with_labels(self, labels: Collection[Label]) -> NodeSet:
        values = defaultdict[str, set[str | None]](set)
        for key, value in labels:
            values[key].add(value)
        return self._that(
            labels,
            lambda node: any(nodes.labels_of(node).get(key) in values[key] for key in values),
        )

    def _that(self, by: Collection[object], holds: Callable[[Mapping[str, Any]], bool]) -> NodeSet:
        """The nodes for which it holds; none if there is nothing that it is decided by."""
        known = self._cache.nodes.items() if by else ()
        return self._known(name for name, node in known if holds(node))

    def _known(self, names: Iterable[str]) -> NodeSet:
        known = self._cache.nodes
        return self._cache.state().numbers.set_of([name for name in names if name in known])


def _lacks_any(node: Mapping[str, Any], resources: Iterable[str]) -> bool:
    return any(lacks(node, resource) for resource in resources)
