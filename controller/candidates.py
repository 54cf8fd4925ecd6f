"""On which nodes a pod's claims may be allocated, or in words why on none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller import nodes, pods
from dra_driver.model.claim import Object, allocation


@dataclass(frozen=True, slots=True)
class Candidates:
    """`fitting` nodes may be tried now, `preferred` before all others; `reason` says for people
    what is the matter with the rest."""

    fitting: tuple[str, ...]
    preferred: str
    reason: str


def candidates(
    pod: Object,
    allocated: Iterable[Object],
    known: Iterable[Object],
    excluded: Mapping[str, str],
    volumes: Sequence[Object] = (),
) -> Candidates:
    """`allocated` are the pod's claims that have an allocation already: the others must follow
    to its nodes. `excluded` are nodes that are not to be tried now, with the words why; `volumes`
    are node selectors of the pod's volumes."""
    selectors = [
        selector
        for claim in allocated
        if (selector := (allocation(claim) or {}).get("nodeSelector")) is not None
    ]
    bound = pods.node_name(pod)
    if bound:
        return Candidates((bound,), "", "")
    fitting: list[str] = []
    misfits: Counter[str] = Counter()
    for node in known:
        name = nodes.name_of(node)
        why = nodes.misfit(pod, node)
        if why is None and not all(nodes.selector_matches(each, node) for each in selectors):
            why = "not where the pod's other claims are"
        if why is None and not all(nodes.selector_matches(each, node) for each in volumes):
            why = "not where the pod's volumes are"
        if why is None:
            why = excluded.get(name)
        if why is None:
            fitting.append(name)
        else:
            misfits[why] += 1
    nominated = pods.nominated_node(pod)
    preferred = nominated if nominated in fitting else ""
    return Candidates(tuple(fitting), preferred, _reason(misfits, len(fitting)))


def _reason(misfits: Counter[str], fitting: int) -> str:
    total = misfits.total() + fitting
    if not total:
        return "there are no nodes"
    counted = sorted(misfits.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {why}" for why, count in counted)
    noun = "node" if total == 1 else "nodes"
    return f"{total} {noun}: {parts}" if parts else ""
