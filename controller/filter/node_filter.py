"""On which nodes a pod's claims may be allocated, or why on none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache import nodes, pods
from controller.cache.recent import Recent
from controller.filter.node_labels import NodeLabels, NodeLister
from controller.filter.predictions import Prediction
from dra_driver.model.claims.claim import Object
from dra_driver.selector.allowance import Allowance

_LIMIT: Final = 256  # remembered constraints; pods of one workload have the same
_FEW: Final = 16  # nodes that are examined one by one
_BETWEEN_CHECKS: Final = 8  # nodes; constraints of a megabyte take 20 ms for each node


@dataclass(frozen=True, slots=True)
class FeasibleNodes:
    """`feasible` nodes may be tried now, and `nominated` (one of them, or none) is tried first;
    `preempting` ones (of them, too) last, as other pods must end there. `reason` says for people
    why the other nodes are excluded. kube-scheduler is expected to refuse the `unfit` ones."""

    feasible: NodeSet
    nominated: NodeSet
    reason: str
    preempting: NodeSet = 0
    unfit: NodeSet = 0

    def with_unfit(self) -> FeasibleNodes:
        """The same, where the unfit ones may be tried, too."""
        return replace(self, feasible=self.feasible | self.unfit)


@dataclass(frozen=True, slots=True)
class _AllowedNodes:
    """The nodes that a pod's own constraints allow; `reasons` counts why others are excluded."""

    feasible: NodeSet
    reasons: Counter[str]


class Predictor(Protocol):
    """What kube-scheduler will say (`controller.filter.predictions.Predictions`)."""

    def of(self, pod: Object, nodes: NodeSet, /) -> Prediction: ...

    def looks_at_other_nodes(self, pod: Object, /) -> bool: ...


class NodeFilter:
    """Applies the constraints of pods, volumes and claims to the nodes of the cache. Results are
    remembered until a node changes in what is read of it.

    A pod's constraints may have a hundred thousand parts: `allowance` is checked meanwhile.
    """

    def __init__(
        self,
        lister: NodeLister,
        numbers: NodeNumbers,
        allowance: Allowance,
        predictor: Predictor | None = None,
    ) -> None:
        """Without a `predictor` kube-scheduler is expected to take any node that the pod's own
        constraints allow."""
        self._lister = lister
        self._numbers = numbers
        self._allowance = allowance
        self._versions = lister.nodes_version, numbers.epoch
        self._filtered: Recent[bytes, _AllowedNodes] = Recent(_LIMIT)
        self._labels = NodeLabels(lister, numbers)
        self._predictor = predictor

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
        predicted = self._predict(pod, feasible, nominated)
        for reason, unfit in predicted.unfit:
            reasons[reason] += unfit.bit_count()
        allowed, feasible = feasible, predicted.fits | predicted.preempting
        return FeasibleNodes(
            feasible,
            nominated,
            _summary(+reasons, feasible.bit_count()),
            predicted.preempting,
            allowed ^ feasible,
        )

    def feasible_among(self, pod: Object, some: NodeSet) -> NodeSet:
        """The nodes that a change of `some` nodes may have made feasible: those of them that the
        pod's own constraints allow, and kube-scheduler; or all such nodes, if pods of one node
        decide about others."""
        if self._predictor is None:
            return self._allowed_among(pod, some)
        if self._predictor.looks_at_other_nodes(pod):
            some = self._filter(pod).feasible
        allowed = self._allowed_among(pod, some)
        predicted = self._predict(pod, allowed, 0)
        return predicted.fits | predicted.preempting

    def _allowed_among(self, pod: Object, some: NodeSet) -> NodeSet:
        """Those of `some` nodes that the pod's own constraints allow. A few nodes are examined one
        by one: after a change of a node no result for all nodes is remembered."""
        if some.bit_count() > _FEW:
            return some & self._filter(pod).feasible
        known = self._lister.nodes
        names = [name for name in self._numbers.names(some) if name in known]
        return self._numbers.set_of(
            [name for name in names if nodes.filter_reason(pod, known[name]) is None]
        )

    def _predict(self, pod: Object, feasible: NodeSet, nominated: NodeSet) -> Prediction:
        """Where kube-scheduler has nominated a node itself, it will not refuse that one."""
        if self._predictor is None:
            return Prediction(feasible, 0, ())
        predicted = self._predictor.of(pod, feasible & ~nominated)
        return replace(predicted, fits=predicted.fits | nominated)

    def matching(self, selector: Mapping[str, Any]) -> NodeSet:
        """The nodes for which `selector_matches` is true."""
        return self._labels.matching(selector)

    def domains(self, key: str) -> dict[str, NodeSet]:
        """The nodes by their values of the label; nodes without it are in none."""
        return self._labels.domains(key)

    def _filter(self, pod: Object) -> _AllowedNodes:
        self._forget_outdated()
        return self._filtered.of(nodes.digest(nodes.demand(pod)), lambda: self._examine(pod))

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

    def _forget_outdated(self) -> None:
        versions = self._lister.nodes_version, self._numbers.epoch
        if versions != self._versions:
            self._versions = versions
            self._filtered.clear()


def _summary(reasons: Counter[str], feasible: int) -> str:
    total = reasons.total() + feasible
    if not total:
        return "there are no nodes"
    counted = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {reason}" for reason, count in counted)
    noun = "node" if total == 1 else "nodes"
    return f"{total} {noun}: {parts}" if parts else ""
