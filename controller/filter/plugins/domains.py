"""Nodes by topology domain: by the values of a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from controller.allocator.nodes.node_set import NodeSet
from controller.cache.matching_pods import NodeCounts
from controller.filter.node_labels import NodeLabels


def preempted(there: NodeCounts, left: NodeCounts) -> dict[str, int]:
    """By node, how many of some pods would end there."""
    if there is left:
        return {}
    return {node: more for node, count in there.items() if (more := count - left.get(node, 0))}


@dataclass(frozen=True, slots=True)
class Domains:
    """How many of some pods are in each domain of the label `key`; none has none."""

    labels: NodeLabels
    key: str
    counts: Mapping[str, int]

    @classmethod
    def of(cls, labels: NodeLabels, key: str, there: Iterable[tuple[str, int]]) -> Domains:
        """The pods are given by node; those on nodes without the label do not count."""
        counts = Counter[str]()
        for node, count in there:
            if (value := labels.value(key, node)) is not None:
                counts[value] += count
        return cls(labels, key, counts)

    def total(self) -> int:
        """In all domains."""
        return sum(self.counts.values())

    def nodes(self) -> NodeSet:
        """All nodes of the domains that have any."""
        return self.labels.with_values(self.key, self.counts)

    def without(self, gone: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Of each node where so many would end: how many would be left in its domain."""
        for node, count in gone.items():
            if (value := self.labels.value(self.key, node)) is not None:
                yield node, self.counts.get(value, 0) - count
