"""On which nodes a pod's claims may be allocated, or in words why on none. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache import nodes, pods
from controller.filter.label_index import LabelIndex
from dra_driver.model.claim import Object, allocation
from dra_driver.selector.allowance import Allowance

_REMEMBERED = 256  # demands on nodes: pods of one workload make the same
_FEW = 16
_LOOKS = 8  # nodes between two looks at the allowance: a demand of megabytes takes 20 ms for each


@dataclass(frozen=True, slots=True)
class FeasibleNodes:
    """`fitting` nodes may be tried now, `preferred` (one of them, or none) before all others;
    `reason` says for people what is the matter with the rest."""

    fitting: NodeSet
    preferred: NodeSet
    reason: str

    def explain(self, unsatisfied: Callable[[], str]) -> str:
        """Why the pod is served on no node; `unsatisfied` says it of those that are fitting."""
        if not self.fitting:
            return f"no node fits the pod: {self.reason}"
        return f"{unsatisfied()} (of {self.reason})" if self.reason else unsatisfied()


@dataclass(frozen=True, slots=True)
class Fit:
    """What the nodes' and a pod's own words allow; `misfits` counts the reasons."""

    fitting: NodeSet
    misfits: Counter[str]


class NodeFilter:
    """Which nodes fit what pods, volumes and claims demand, remembered until a node changes.

    `known` has the nodes of the moment; `version` gives another number whenever what a demand
    reads of them has changed. A pod's demand may be of a hundred thousand parts: `allowance` is
    checked again and again.
    """

    def __init__(
        self,
        known: Mapping[str, Object],
        numbers: NodeNumbers,
        version: Callable[[], int],
        allowance: Allowance | None = None,
    ) -> None:
        self.numbers = numbers
        self._known = known
        self._version = version
        self._allowance = allowance or Allowance()
        self._kept_for = version(), numbers.epoch
        self._fits: OrderedDict[bytes, Fit] = OrderedDict()
        self._index = LabelIndex(known, numbers)

    def of(self, pod: Object) -> Fit:
        """The nodes that fit the pod, as far as it and they say. Raises AllowanceSpent where it
        takes too long to find that out."""
        self._settle()
        demand = nodes.digest(nodes.demand(pod))
        found = self._fits.get(demand)
        if found is None:
            found = self._fits[demand] = self._look(pod)
            if len(self._fits) > _REMEMBERED:
                self._fits.popitem(last=False)
        self._fits.move_to_end(demand)
        return found

    def among(self, pod: Object, some: NodeSet) -> NodeSet:
        """Those of `some` nodes that fit the pod. Few are examined one by one, as the answers for
        all nodes have to be found anew after each change of a node."""
        if some.bit_count() > _FEW:
            return some & self.of(pod).fitting
        return self.numbers.set_of(
            [
                name
                for name in self.numbers.names(some)
                if name in self._known and nodes.filter_reason(pod, self._known[name]) is None
            ]
        )

    def matching(self, selector: Object) -> NodeSet:
        """The nodes that a NodeSelector (core/v1) allows."""
        self._settle()
        return self._index.matching(selector)

    def _settle(self) -> None:
        present = self._version(), self.numbers.epoch
        if present != self._kept_for:
            self._kept_for = present
            self._fits.clear()
            self._index = LabelIndex(self._known, self.numbers)

    def _look(self, pod: Object) -> Fit:
        fitting, misfits = list[str](), Counter[str]()
        for number, (name, node) in enumerate(self._known.items()):
            if number % _LOOKS == 0:
                self._allowance.check()
            misfit = nodes.filter_reason(pod, node)
            if misfit is None:
                fitting.append(name)
            else:
                misfits[misfit] += 1
        return Fit(self.numbers.set_of(fitting), misfits)


def feasible_nodes(
    pod: Object,
    fits: NodeFilter,
    allocated: Iterable[Object],
    *,
    excluded: Mapping[str, str],
    volumes: Sequence[Object] = (),
) -> FeasibleNodes:
    """`allocated` are the pod's claims that have an allocation already: the others must follow to
    its nodes. `excluded` are nodes that are not to be tried now, with the words why; `volumes` are
    node selectors of the pod's volumes."""
    numbers = fits.numbers
    bound = pods.node_name(pod)
    if bound:
        return FeasibleNodes(numbers.bit(bound), 0, "")
    fit = fits.of(pod)
    fitting = fit.fitting
    misfits = fit.misfits.copy()
    claims = [
        selector
        for claim in allocated
        if (selector := (allocation(claim) or {}).get("nodeSelector")) is not None
    ]
    for selectors, why in (
        (claims, "not where the pod's other claims are"),
        (volumes, "not where the pod's volumes are"),
    ):
        for selector in selectors:
            kept = fitting & fits.matching(selector)
            misfits[why] += (fitting ^ kept).bit_count()
            fitting = kept
    for name, why in excluded.items():
        if fitting & numbers.bit(name):
            misfits[why] += 1
            fitting ^= numbers.bit(name)
    nominated = pods.nominated_node(pod)
    preferred = fitting & numbers.bit(nominated) if nominated else 0
    return FeasibleNodes(fitting, preferred, _reason(+misfits, fitting.bit_count()))


def _reason(misfits: Counter[str], fitting: int) -> str:
    total = misfits.total() + fitting
    if not total:
        return "there are no nodes"
    counted = sorted(misfits.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {why}" for why, count in counted)
    noun = "node" if total == 1 else "nodes"
    return f"{total} {noun}: {parts}" if parts else ""
