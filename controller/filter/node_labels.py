"""Nodes by the values of their labels: a selector costs what it selects, not an examination of each
node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any, Protocol

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet, set_of_numbers
from controller.cache import nodes
from dra_driver.model.claims.claim import ReadOnlyObject

# Nodes by the value of a label (None: without it), each set without the zeros below its first node:
# the hostname has a group for each node, and a set with a bit for each node may take 2 KB.
_Groups = Mapping[str | None, tuple[int, NodeSet]]


class NodeLister(Protocol):
    """Where the filter reads nodes: the cache. `nodes_version` changes when a node comes, goes, or
    changes in what constraints read."""

    nodes_version: int

    @property
    def nodes(self) -> Mapping[str, ReadOnlyObject]: ...


class NodeLabels:
    """Remembered until a node changes in what is read of it."""

    def __init__(self, lister: NodeLister, numbers: NodeNumbers) -> None:
        self._lister = lister
        self._numbers = numbers
        self._version = self.version
        self._groups: dict[tuple[str, str], _Groups] = {}  # by the part of a term, and its key

    def matching(self, selector: Mapping[str, Any]) -> NodeSet:
        """The nodes for which `controller.cache.nodes.selector_matches` is true."""
        matching = 0
        for term in selector.get("nodeSelectorTerms") or ():
            sets = [
                self._with_requirement(part, requirement)
                for part in ("matchExpressions", "matchFields")
                for requirement in term.get(part) or ()
            ]
            matching |= reduce(and_, sets) if sets else 0  # a term without requirements: no node
        return matching

    def with_values(self, topology_key: str, values: Iterable[str]) -> NodeSet:
        """The nodes where that label has one of these values."""
        groups = self._grouped("matchExpressions", topology_key)
        single, found = list[int](), 0
        for value in values:
            first, group = groups[value]
            if group == 1:
                single.append(first)
            else:
                found |= group << first
        return found | set_of_numbers(single)

    def domains(self, topology_key: str) -> dict[str, NodeSet]:
        """The nodes by their values of the label; nodes without it are in none."""
        groups = self._grouped("matchExpressions", topology_key)
        return {
            value: nodes << first for value, (first, nodes) in groups.items() if value is not None
        }

    def without(self, topology_key: str) -> NodeSet:
        """The nodes that do not have the label."""
        first, group = self._grouped("matchExpressions", topology_key).get(None, (0, 0))
        return group << first

    def set_of(self, names: Iterable[str]) -> NodeSet:
        """The set of these nodes, all of which are present."""
        return self._numbers.set_of([*names])

    def set_of_present(self, names: Iterable[str]) -> NodeSet:
        """The set of those of the nodes that are present."""
        return self.set_of(name for name in names if name in self._lister.nodes)

    def names_of(self, nodes: NodeSet) -> frozenset[str]:
        """The names of the nodes."""
        return frozenset(self._numbers.names(nodes))

    def that(self, holds: Callable[[ReadOnlyObject], bool]) -> NodeSet:
        """The nodes for which it holds."""
        return self.set_of(name for name, node in self._lister.nodes.items() if holds(node))

    @property
    def version(self) -> tuple[int, int]:
        """Changes when sets of nodes that were found by labels or taints may differ."""
        return self._lister.nodes_version, self._numbers.epoch

    def value(self, topology_key: str, node: str) -> str | None:
        """None where the node does not have the label, or there is none of that name."""
        known = self._lister.nodes.get(node)
        return None if known is None else nodes.labels_of(known).get(topology_key)

    def _with_requirement(self, part: str, requirement: Mapping[str, Any]) -> NodeSet:
        groups = self._grouped(part, requirement["key"])
        if requirement["operator"] == "In":
            values = [each for each in requirement.get("values") or () if each in groups]
        else:
            values = [each for each in groups if nodes.requirement_holds(requirement, each)]
        return reduce(or_, (groups[value][1] << groups[value][0] for value in values), 0)

    def _grouped(self, part: str, key: str) -> _Groups:
        if self.version != self._version:
            self._version = self.version
            self._groups.clear()
        groups = self._groups.get((part, key))
        if groups is None:
            groups = self._groups[part, key] = self._group(part, key)
        return groups

    def _group(self, part: str, key: str) -> _Groups:
        numbers: defaultdict[str | None, list[int]] = defaultdict(list)
        for name, node in self._lister.nodes.items():
            found = nodes.labels_of(node) if part == "matchExpressions" else {"metadata.name": name}
            numbers[found.get(key)].append(self._numbers.number(name))
        first = {value: min(each) for value, each in numbers.items()}
        return {
            value: (first[value], set_of_numbers(number - first[value] for number in each))
            for value, each in numbers.items()
        }
