"""How much of each resource every node has left, as nodes and pods come and go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache.pod_requests import Requests
from controller.cache.recent import Recent

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_REMEMBERED: Final = 32  # amounts of a resource: pods of one workload ask for the same

_Asked = tuple[int, bool]


class NodeResources:
    """Amounts are in the units of `Requests`. A pod may come before its node. The nodes that have
    an amount are found once, and updated as the nodes change."""

    def __init__(self, numbers: NodeNumbers) -> None:
        self._numbers = numbers
        self._epoch = numbers.epoch
        self._allocatable: dict[str, Mapping[str, int]] = {}
        self._used: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._having: defaultdict[str, Recent[_Asked, NodeSet]] = defaultdict(
            lambda: Recent(_REMEMBERED)
        )

    def set_node(self, name: str, allocatable: Mapping[str, int] | None) -> None:
        """What the node has in all; None where it is gone."""
        if allocatable is None:
            self._allocatable.pop(name, None)
        else:
            self._allocatable[name] = allocatable
        for resource in self._having:
            self._update(name, resource)

    def add(self, node: str, requests: Requests, times: int) -> None:
        """Pods of the node take so much more of it; less, where `times` is negative."""
        used = self._used[node]
        for resource, amount in requests:
            left = used.get(resource, 0) + times * amount
            if left:
                used[resource] = left
            else:
                used.pop(resource, None)
            self._update(node, resource)
        if not used:
            del self._used[node]

    def nodes_with(self, resource: str, amount: int, *, or_without: bool = False) -> NodeSet:
        """The nodes that have so much left; `or_without` also those that have nothing of the
        resource, used or not."""
        if self._epoch != self._numbers.epoch:
            self._epoch = self._numbers.epoch
            self._having.clear()
        asked = amount, or_without
        return self._having[resource].of(asked, lambda: self._find(resource, asked))

    def allocated_share(self, nodes: NodeSet, more: Mapping[str, int]) -> int:
        """How much cpu and memory of these nodes is requested, with `more` of them, in percent:
        what kube-scheduler's placements are scored by (1.37.2,
        `resourceAllocationScorer.scorePlacement` with MostAllocated, cpu and memory of equal
        weight)."""
        names = list(self._numbers.names(nodes))
        shares = list[int]()
        for resource in ("cpu", "memory"):
            total = sum(self._allocatable.get(name, _NOTHING).get(resource, 0) for name in names)
            used = sum(self._used.get(name, _NOTHING).get(resource, 0) for name in names)
            used += more.get(resource, 0)
            if total:
                shares.append(100 * min(total, used) // total)
        return sum(shares) // len(shares) if shares else 0

    def _find(self, resource: str, asked: _Asked) -> NodeSet:
        having = [node for node in self._allocatable if self._has(node, resource, asked)]
        return self._numbers.set_of(having)

    def _has(self, node: str, resource: str, asked: _Asked) -> bool:
        allocatable = self._allocatable[node].get(resource, 0)
        amount, or_without = asked
        if or_without and not allocatable:
            return True
        return amount <= allocatable - self._used.get(node, _NOTHING).get(resource, 0)

    def _update(self, node: str, resource: str) -> None:
        known = self._having.get(resource)
        if not known or not (node in self._allocatable or node in self._numbers):
            return
        bit = self._numbers.bit(node)
        for asked, nodes in known.items():
            has = node in self._allocatable and self._has(node, resource, asked)
            known[asked] = nodes | bit if has else nodes & ~bit
