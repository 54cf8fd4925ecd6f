"""On which nodes a pod's claims may be allocated, or why on none. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache import nodes, pods
from controller.filter.label_index import LabelIndex
from dra_driver.model.claim import Object, allocation
from dra_driver.selector.allowance import Allowance

_LIMIT: Final = 256  # remembered constraints; pods of one workload have the same
_FEW: Final = 16  # nodes that are examined one by one
_BETWEEN_CHECKS: Final = 8  # nodes; constraints of a megabyte take 20 ms for each node


@dataclass(frozen=True, slots=True)
class FeasibleNodes:
    """`feasible` nodes may be tried now, and `nominated` (one of them, or none) is tried first.
    `reason` says for people why the other nodes are excluded."""

    feasible: NodeSet
    nominated: NodeSet
    reason: str

    def explain(self, fit_error: Callable[[], str]) -> str:
        """Why no node serves the pod; `fit_error` says why no feasible node does."""
        if not self.feasible:
            return f"no node fits the pod: {self.reason}"
        return f"{fit_error()} (of {self.reason})" if self.reason else fit_error()


@dataclass(frozen=True, slots=True)
class _Filtered:
    """The nodes that a pod's own constraints allow; `reasons` counts why others are excluded."""

    feasible: NodeSet
    reasons: Counter[str]


class NodeLister(Protocol):
    """Where the filter reads nodes: the cache. `nodes_version` changes when a node comes, goes, or
    changes in what constraints read."""

    nodes: dict[str, Object]
    nodes_version: int


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
        self._filtered: OrderedDict[bytes, _Filtered] = OrderedDict()
        self._index = LabelIndex(lister.nodes, numbers)

    def feasible_nodes(
        self,
        pod: Object,
        allocated: Iterable[Object],
        *,
        excluded: Mapping[str, str],
        volumes: Sequence[Object] = (),
    ) -> FeasibleNodes:
        """`allocated`: the pod's claims that are allocated, whose nodes the other claims follow.
        `excluded`: nodes that are not tried now, each with the reason. `volumes`: node selectors of
        the pod's volumes. Raises AllowanceSpent."""
        bound = pods.node_name(pod)
        if bound:
            return FeasibleNodes(self._numbers.bit(bound), 0, "")
        filtered = self._filter(pod)
        feasible, reasons = filtered.feasible, filtered.reasons.copy()
        of_claims = [(allocation(claim) or {}).get("nodeSelector") for claim in allocated]
        for selectors, reason in (
            (filter(None, of_claims), "not where the pod's other claims are"),
            (volumes, "not where the pod's volumes are"),
        ):
            for selector in selectors:
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

    def matching(self, selector: Object) -> NodeSet:
        """The nodes that a NodeSelector (core/v1) allows."""
        self._forget_outdated()
        return self._index.matching(selector)

    def _filter(self, pod: Object) -> _Filtered:
        self._forget_outdated()
        constraints = nodes.digest(nodes.demand(pod))
        found = self._filtered.get(constraints)
        if found is None:
            found = self._filtered[constraints] = self._examine(pod)
            if len(self._filtered) > _LIMIT:
                self._filtered.popitem(last=False)
        self._filtered.move_to_end(constraints)
        return found

    def _examine(self, pod: Object) -> _Filtered:
        feasible, reasons = list[str](), Counter[str]()
        for number, (name, node) in enumerate(self._lister.nodes.items()):
            if number % _BETWEEN_CHECKS == 0:
                self._allowance.check()
            reason = nodes.filter_reason(pod, node)
            if reason is None:
                feasible.append(name)
            else:
                reasons[reason] += 1
        return _Filtered(self._numbers.set_of(feasible), reasons)

    def _forget_outdated(self) -> None:
        versions = self._lister.nodes_version, self._numbers.epoch
        if versions != self._versions:
            self._versions = versions
            self._filtered.clear()
            self._index = LabelIndex(self._lister.nodes, self._numbers)


def _summary(reasons: Counter[str], feasible: int) -> str:
    total = reasons.total() + feasible
    if not total:
        return "there are no nodes"
    counted = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {reason}" for reason, count in counted)
    noun = "node" if total == 1 else "nodes"
    return f"{total} {noun}: {parts}" if parts else ""
