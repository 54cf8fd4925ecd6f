"""Nodes by the values of labels: a selector costs what it selects, not a look at each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import reduce
from typing import Any, Final

from controller.allocator.node_selector import requirement_holds
from dra_driver.model.claim import Object

_NONE: Final[frozenset[str]] = frozenset()
_Groups = Mapping[str | None, frozenset[str]]  # names by value; None is for those without


class LabelIndex:
    """Of `known` nodes as they are now; it serves until one of them changes."""

    def __init__(self, known: Mapping[str, Object]) -> None:
        self._known = known
        self._by_label: dict[str, _Groups] = {}

    def matching(self, selector: Mapping[str, Any]) -> AbstractSet[str]:
        """The names of those for which `selector_matches` is true."""
        terms = selector.get("nodeSelectorTerms") or ()
        return _union([self._term(term) for term in terms])

    def _term(self, term: Mapping[str, Any]) -> frozenset[str]:
        found = [
            self._requirement(requirement, self._groups(requirement["key"]))
            for requirement in term.get("matchExpressions") or ()
        ]
        found += [
            self._requirement(requirement, self._fields(requirement["key"]))
            for requirement in term.get("matchFields") or ()
        ]
        return reduce(frozenset.intersection, found) if found else _NONE

    def _requirement(self, requirement: Mapping[str, Any], groups: _Groups) -> frozenset[str]:
        if requirement["operator"] == "In":
            values = requirement.get("values") or ()
            return _union([groups[value] for value in values if value in groups])
        allowed = (value for value in groups if requirement_holds(requirement, value))
        return _union([groups[value] for value in allowed])

    def _groups(self, label: str) -> _Groups:
        found = self._by_label.get(label)
        if found is None:
            names: defaultdict[str | None, list[str]] = defaultdict(list)
            for name, node in self._known.items():
                names[(node["metadata"].get("labels") or {}).get(label)].append(name)
            found = self._by_label[label] = {each: frozenset(of) for each, of in names.items()}
        return found

    def _fields(self, field: str) -> _Groups:
        if field != "metadata.name":
            return {None: frozenset(self._known)}
        return {name: frozenset({name}) for name in self._known}


def _union(sets: list[frozenset[str]]) -> frozenset[str]:
    return sets[0] if len(sets) == 1 else _NONE.union(*sets)
