"""Nodes by the values of labels: a selector costs what it selects, not a look at each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any, NamedTuple

from controller.allocator.node_set import NodeNumbers, NodeSet, set_of_numbers
from controller.cache.nodes import labels_of, requirement_holds
from dra_driver.model.claim import Object


class _Group(NamedTuple):
    """A set of nodes without the zeros below its first one: a label such as the hostname has a
    group for each node, and a set with a bit for each node may take 2 KB."""

    first: int
    bits: int

    def nodes(self) -> NodeSet:
        return self.bits << self.first


_Groups = Mapping[str | None, _Group]  # by value; None is for nodes without the label


class LabelIndex:
    """Of `known` nodes as they are now, and as they are numbered; it serves until a node
    changes."""

    def __init__(self, known: Mapping[str, Object], numbers: NodeNumbers) -> None:
        self._known = known
        self._numbers = numbers
        self._known_groups: dict[tuple[str, str], _Groups] = {}

    @cached_property
    def _everyone(self) -> NodeSet:
        return self._numbers.set_of(self._known.keys())

    def matching(self, selector: Mapping[str, Any]) -> NodeSet:
        """Those for which `selector_matches` is true."""
        return reduce(or_, map(self._term, selector.get("nodeSelectorTerms") or ()), 0)

    def _term(self, term: Mapping[str, Any]) -> NodeSet:
        found = [
            self._requirement(requirement, self._groups(part, requirement["key"]))
            for part in ("matchExpressions", "matchFields")
            for requirement in term.get(part) or ()
        ]
        return reduce(and_, found) if found else 0  # a term without requirements matches nothing

    def _requirement(self, requirement: Mapping[str, Any], groups: _Groups) -> NodeSet:
        if requirement["operator"] == "In":
            values = requirement.get("values") or ()
            return _union(groups[value] for value in values if value in groups)
        holds = {value: requirement_holds(requirement, value) for value in groups}
        if sum(holds.values()) > len(holds) // 2:
            return self._everyone & ~_union(groups[value] for value in holds if not holds[value])
        return _union(groups[value] for value in holds if holds[value])

    def _groups(self, part: str, key: str) -> _Groups:
        """By the values of a label, or of a field."""
        found = self._known_groups.get((part, key))
        if found is None:
            by_value: defaultdict[str | None, list[int]] = defaultdict(list)
            for name, node in self._known.items():
                has = labels_of(node) if part == "matchExpressions" else {"metadata.name": name}
                by_value[has.get(key)].append(self._numbers.number(name))
            found = {value: _group(chosen) for value, chosen in by_value.items()}
            self._known_groups[part, key] = found
        return found


def _group(chosen: list[int]) -> _Group:
    first = min(chosen)
    return _Group(first, set_of_numbers(number - first for number in chosen))


def _union(groups: Iterable[_Group]) -> NodeSet:
    return reduce(or_, (group.nodes() for group in groups), 0)
