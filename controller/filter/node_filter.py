"""On which nodes a pod's claims may be allocated, or why on none. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Final, Protocol

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet, set_of_numbers
from controller.cache import nodes, pods
from dra_driver.model.claims.claim import Object, ReadOnlyObject
from dra_driver.selector.allowance import Allowance

_LIMIT: Final = 256  # remembered constraints; pods of one workload have the same
_FEW: Final = 16  # nodes that are examined one by one
_BETWEEN_CHECKS: Final = 8  # nodes; constraints of a megabyte take 20 ms for each node


# Nodes by the value of a label (None: without it), each set without the zeros below its first node:
# the hostname has a group for each node, and a set with a bit for each node may take 2 KB.
_Groups = Mapping[str | None, tuple[int, NodeSet]]


@dataclass(frozen=True, slots=True)
class FeasibleNodes:
    """`feasible` nodes may be tried now, and `nominated` (one of them, or none) is tried first.
    `reason` says for people why the other nodes are excluded."""

    feasible: NodeSet
    nominated: NodeSet
    reason: str


@dataclass(frozen=True, slots=True)
class _AllowedNodes:
    """The nodes that a pod's own constraints allow; `reasons` counts why others are excluded."""

    feasible: NodeSet
    reasons: Counter[str]


class NodeLister(Protocol):
    """Where the filter reads nodes: the cache. `nodes_version` changes when a node comes, goes, or
    changes in what constraints read."""

    nodes_version: int

    @property
    def nodes(self) -> Mapping[str, ReadOnlyObject]: ...


class NodeFilter:
    """Applies the constraints of pods, volumes and claims to the nodes of the cache. Results are
    remembered until a node changes in what is read of it.

    A pod's constraints may have a hundred thousand parts: `allowance` is checked meanwhile.
    """

    def __init__(self, lister: NodeLister, numbers: NodeNumbers, allowance: Allowance) -> None:
        self._lister = lister
        self._numbers = numbers
        self._allowance = allowance
        self._versions = lister.nodes_version, numbers.epoch
        self._filtered: OrderedDict[bytes, _AllowedNodes] = OrderedDict()
        self._groups: dict[tuple[str, str], _Groups] = {}  # by the part of a term, and its key

    def feasible_nodes(
        self, pod: Object, selectors: Iterable[tuple[Object, str]], excluded: Mapping[str, str]
    ) -> FeasibleNodes:
        """`selectors`: node selectors (core/v1) of the pod's other claims and volumes, and
        `excluded`: nodes that are not tried now, each with the reason for people. Raises
        AllowanceSpent."""
        bound = pods.node_name(pod)
        if bound and not (bound in self._lister.nodes or bound in self._numbers):
            return FeasibleNodes(0, 0, f"it is bound to {bound}, and there is no such node")
        if bound:
            return FeasibleNodes(self._numbers.bit(bound), 0, "")
        filtered = self._filter(pod)
        feasible, reasons = filtered.feasible, filtered.reasons.copy()
        for selector, reason in selectors:
            matching = feasible & self.matching(selector)
            reasons[reason] += (feasible ^ matching).bit_count()
            feasible = matching
        for name, reason in excluded.items():
            if feasible & self._numbers.bit(name):
                reasons[reason] += 1
                feasible ^= self._numbers.bit(name)
        name = pods.nominated_node(pod)
        nominated = feasible & self._numbers.bit(name) if name else 0
        return FeasibleNodes(feasible, nominated, _summary(+reasons, feasible.bit_count()))

    def feasible_among(self, pod: Object, some: NodeSet) -> NodeSet:
        """Those of `some` nodes that the pod's own constraints allow. A few nodes are examined one
        by one: after a change of a node no result for all nodes is remembered."""
        if some.bit_count() > _FEW:
            return some & self._filter(pod).feasible
        known = self._lister.nodes
        names = [name for name in self._numbers.names(some) if name in known]
        return self._numbers.set_of(
            [name for name in names if nodes.filter_reason(pod, known[name]) is None]
        )

    def matching(self, selector: Mapping[str, Any]) -> NodeSet:
        """The nodes for which `selector_matches` is true, from an index of the values of labels: a
        selector costs what it selects, not an examination of each node."""
        self._forget_outdated()
        matching = 0
        for term in selector.get("nodeSelectorTerms") or ():
            sets = [
                self._with_requirement(part, requirement)
                for part in ("matchExpressions", "matchFields")
                for requirement in term.get(part) or ()
            ]
            matching |= reduce(and_, sets) if sets else 0  # a term without requirements: no node
        return matching

    def domains(self, key: str) -> dict[str, NodeSet]:
        """The nodes by their values of the label; nodes without it are in none."""
        self._forget_outdated()
        groups = self._label_groups("matchExpressions", key)
        return {
            value: nodes << first for value, (first, nodes) in groups.items() if value is not None
        }

    def _filter(self, pod: Object) -> _AllowedNodes:
        self._forget_outdated()
        constraints = nodes.digest(nodes.demand(pod))
        allowed = self._filtered.get(constraints)
        if allowed is None:
            allowed = self._filtered[constraints] = self._examine(pod)
            if len(self._filtered) > _LIMIT:
                self._filtered.popitem(last=False)
        self._filtered.move_to_end(constraints)
        return allowed

    def _examine(self, pod: Object) -> _AllowedNodes:
        feasible, reasons = list[str](), Counter[str]()
        for number, (name, node) in enumerate(self._lister.nodes.items()):
            if number % _BETWEEN_CHECKS == 0:
                self._allowance.check()
            reason = nodes.filter_reason(pod, node)
            if reason is None:
                feasible.append(name)
            else:
                reasons[reason] += 1
        return _AllowedNodes(self._numbers.set_of(feasible), reasons)

    def _with_requirement(self, part: str, requirement: Mapping[str, Any]) -> NodeSet:
        groups = self._label_groups(part, requirement["key"])
        if requirement["operator"] == "In":
            values = [each for each in requirement.get("values") or () if each in groups]
        else:
            values = [each for each in groups if nodes.requirement_holds(requirement, each)]
        return reduce(or_, (groups[value][1] << groups[value][0] for value in values), 0)

    def _label_groups(self, part: str, key: str) -> _Groups:
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

    def _forget_outdated(self) -> None:
        versions = self._lister.nodes_version, self._numbers.epoch
        if versions != self._versions:
            self._versions = versions
            self._filtered.clear()
            self._groups.clear()


def _summary(reasons: Counter[str], feasible: int) -> str:
    total = reasons.total() + feasible
    if not total:
        return "there are no nodes"
    counted = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {reason}" for reason, count in counted)
    noun = "node" if total == 1 else "nodes"
    return f"{total} {noun}: {parts}" if parts else ""
