"""Which nodes have cards for a pod, which of them is best, and which cards it gets. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.allocate import FitError, allocate, feasible, rank
from controller.allocator.diagnosis import diagnose_nodes
from controller.allocator.order import Policy
from controller.cache.keys import uid_of
from controller.extender.cache import ExtenderCache
from controller.extender.claims import wanted
from controller.extender.held import BoundPod
from controller.extender.limit_request import LimitRequest, Pod, asked_of
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.node_cards import NodeCard
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size

_HIGHEST: Final = 10  # extender/v1, MaxExtenderPriority


@dataclass(frozen=True, slots=True)
class Filtered:
    """`unfit` says of each other node why not, in words that alike nodes share."""

    fit: tuple[str, ...]
    unfit: Mapping[str, str]


def filter_nodes(view: ExtenderCache, policy: Policy, pod: Pod, nodes: Sequence[str]) -> Filtered:
    """Which of `nodes` can give the pod all that it asks for; both parts keep their order."""
    try:
        asked = asked_of(pod)
        if asked is None:
            return Filtered(tuple(nodes), {})
        claim = wanted(pod, asked)
    except Refused as error:
        return Filtered((), dict.fromkeys(nodes, str(error)))
    with view.without(uid_of(pod)):
        unfit = {node: problem for node in nodes if (problem := view.problem(node))}
        judged = [node for node in nodes if node not in unfit] if unfit else nodes
        known = view.state.numbers
        everyone = known.set_of(judged)
        fit = feasible(view.state, [claim], everyone, policy=policy)
        if not everyone & ~fit and not unfit:
            return Filtered(tuple(nodes), {})
        for alike, reason in diagnose_nodes(view.state, [claim], everyone & ~fit):
            unfit |= dict.fromkeys(known.names(alike), reason)
        if asked.mode is Mode.DRS:
            for node in known.names(everyone & ~fit):
                unfit[node] = _of_sizes(view, asked, node) or unfit[node]
    return Filtered(
        tuple(node for node in nodes if node not in unfit),
        {node: unfit[node] for node in nodes if node in unfit},
    )


def fits(view: ExtenderCache, policy: Policy, pod: Pod, nodes: Collection[str]) -> bool:
    """Whether any of `nodes` can give the pod all that it asks for."""
    try:
        asked = asked_of(pod)
        claim = wanted(pod, asked) if asked else None
    except Refused:
        return False
    if claim is None:
        return bool(nodes)
    judged = view.state.numbers.set_of([node for node in nodes if not view.problem(node)])
    return bool(feasible(view.state, [claim], judged, policy=policy))


def prioritize(
    view: ExtenderCache, policy: Policy, pod: Pod, nodes: Sequence[str]
) -> Mapping[str, int]:
    """A score from 0 to 10 for each of `nodes`; the best one has 10, the next one 9, …"""
    try:
        asked = asked_of(pod)
        claim = wanted(pod, asked) if asked else None
    except Refused:
        claim = None
    if claim is None:
        return dict.fromkeys(nodes, 0)
    with view.without(uid_of(pod)):
        best = rank(view.state, [claim], view.state.numbers.set_of(nodes), policy=policy)
    scores = {node: max(0, _HIGHEST - place) for place, node in enumerate(best)}
    return {node: scores.get(node, 0) for node in nodes}


def place(
    view: ExtenderCache, policy: Policy, pod: Pod, asked: LimitRequest, node: str
) -> BoundPod:
    """The pod with the cards of `node` that it is to have. Raises Refused, in words, where the
    node cannot take it."""
    with view.without(uid_of(pod)):
        problem = view.problem(node)
        if problem:
            raise Refused(f"node {node}: {problem}")
        only = view.state.numbers.bit(node)
        found = allocate(view.state, [wanted(pod, asked)], only, policy=policy)
        if isinstance(found, FitError):
            of_sizes = _of_sizes(view, asked, node) if asked.mode is Mode.DRS else ""
            raise Refused(f"node {node}: {of_sizes or found.explain()}")
    metadata = pod["metadata"]
    granted = [grant.device.card for grant in found.assignments[0]]
    cards = dict.fromkeys(PciAddress.parse(card[1]) for card in granted if card is not None)
    name = f"{metadata['namespace']}/{metadata['name']}"
    return BoundPod(uid_of(pod), name, asked, tuple(cards))


def _of_sizes(view: ExtenderCache, asked: LimitRequest, node: str) -> str:
    """What is to be said of the sizes of instances, where that says more than the allocator."""
    missing = _sizes_without_profile(asked, view.cards(node))
    if missing or len(asked.containers) == 1:
        return missing
    sizes = ", ".join(str(size) for _, size in asked.containers)
    return f"no card has room for DRS instances of sizes {sizes} together"


def _sizes_without_profile(asked: LimitRequest, cards: Sequence[NodeCard]) -> str:
    profiles = sorted({name for card in cards for name in card.profiles}, key=profile_size)
    known = {profile_size(name) for name in profiles}
    for _, size in asked.containers:
        if profiles and size not in known:
            return f"no profile has size {size}; those of its cards are {', '.join(profiles)}"
    return ""
