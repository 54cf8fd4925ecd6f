"""On which nodes a pod's claims may be allocated, or in words why on none. Pure."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller import nodes, pods
from dra_driver.model.claim import Object, allocation

_REMEMBERED = 256  # demands on nodes: pods of one workload make the same


@dataclass(frozen=True, slots=True)
class Candidates:
    """`fitting` nodes may be tried now, `preferred` before all others; `reason` says for people
    what is the matter with the rest."""

    fitting: Collection[str]
    preferred: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fit:
    """What the nodes' and a pod's own words allow; `misfits` counts the reasons."""

    version: int
    fitting: frozenset[str]
    misfits: Counter[str]


class NodeFits:
    """Which nodes fit pods that demand the same of them, remembered until nodes change."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Fit] = OrderedDict()

    def of(self, pod: Object, known: Mapping[str, Object], version: int) -> Fit:
        """`version` is another one whenever what a demand reads of `known` nodes has changed."""
        demand = json.dumps(nodes.demand(pod), sort_keys=True)
        found = self._known.get(demand)
        if found is None or found.version != version:
            found = self._known[demand] = _fit(pod, known, version)
        self._known.move_to_end(demand)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found


def _fit(pod: Object, known: Mapping[str, Object], version: int) -> Fit:
    why = {name: nodes.misfit(pod, node) for name, node in known.items()}
    fitting = frozenset(name for name, misfit in why.items() if misfit is None)
    return Fit(version, fitting, Counter(filter(None, why.values())))


def candidates(
    pod: Object,
    fit: Fit,
    allocated: Iterable[Object],
    known: Mapping[str, Object],
    *,
    excluded: Mapping[str, str],
    volumes: Sequence[Object] = (),
) -> Candidates:
    """`fit` is what `NodeFits` has of the `known` nodes. `allocated` are the pod's claims that have
    an allocation already: the others must follow to its nodes. `excluded` are nodes that are not to
    be tried now, with the words why; `volumes` are node selectors of the pod's volumes."""
    bound = pods.node_name(pod)
    if bound:
        return Candidates((bound,), "", "")
    fitting: Collection[str] = fit.fitting
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
            kept = {name for name in fitting if nodes.selector_matches(selector, known[name])}
            misfits[why] += len(fitting) - len(kept)
            fitting = kept
    for name in excluded.keys() & set(fitting) if excluded else ():
        misfits[excluded[name]] += 1
    if excluded:
        fitting = frozenset(fitting) - excluded.keys()
    nominated = pods.nominated_node(pod)
    preferred = nominated if nominated in fitting else ""
    return Candidates(fitting, preferred, _reason(+misfits, len(fitting)))


def _reason(misfits: Counter[str], fitting: int) -> str:
    total = misfits.total() + fitting
    if not total:
        return "there are no nodes"
    counted = sorted(misfits.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {why}" for why, count in counted)
    noun = "node" if total == 1 else "nodes"
    return f"{total} {noun}: {parts}" if parts else ""
