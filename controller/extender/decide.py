"""Filters and scores nodes for a pod, and chooses its cards. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.allocate import NO_PEERS, FitError, allocate, feasible, rank
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.device import CardKey
from controller.allocator.diagnosis import diagnose_nodes
from controller.allocator.packing.policy import Policy
from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.cache import ExtenderCache
from controller.extender.claim_for_limits import claim_request
from controller.extender.limit_request import LimitRequest, parse_limits
from controller.extender.node_allocations import BoundPod
from dra_driver.asks.limits import Pod
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size

_HIGHEST: Final = 10  # extender/v1, MaxExtenderPriority


@dataclass(frozen=True, slots=True)
class Filtered:
    """`unfit` has the reason for each other node; nodes of a kind share one text."""

    fit: tuple[str, ...]
    unfit: Mapping[str, str]


def filter_nodes(cache: ExtenderCache, policy: Policy, pod: Pod, nodes: Sequence[str]) -> Filtered:
    """Which of `nodes` can give the pod all that it requests; both parts are in the order of
    `nodes`."""
    try:
        request = parse_limits(pod)
        if request is None:
            return Filtered(tuple(nodes), {})
        claim = claim_request(pod, request)
    except Refused as error:
        return Filtered((), dict.fromkeys(nodes, str(error)))
    with cache.without(uid_of(pod)):
        unfit = {node: problem for node in nodes if (problem := cache.problem(node))}
        judged = [node for node in nodes if node not in unfit] if unfit else nodes
        known = cache.state.numbers
        everyone = known.set_of(judged)
        fit = feasible(cache.state, [claim], everyone, policy=policy)
        if not everyone & ~fit and not unfit:
            return Filtered(tuple(nodes), {})
        for alike, reason in diagnose_nodes(cache.state, [claim], everyone & ~fit):
            unfit |= dict.fromkeys(known.names(alike), reason)
        if request.mode is Mode.DRS:
            for node in known.names(everyone & ~fit):
                unfit[node] = _of_sizes(cache, request, node) or unfit[node]
    return Filtered(
        tuple(node for node in nodes if node not in unfit),
        {node: unfit[node] for node in nodes if node in unfit},
    )


def fits(cache: ExtenderCache, policy: Policy, pod: Pod, nodes: Collection[str]) -> bool:
    """Whether any of `nodes` can give the pod all that it requests."""
    try:
        request = parse_limits(pod)
        claim = claim_request(pod, request) if request else None
    except Refused:
        return False
    if claim is None:
        return bool(nodes)
    judged = cache.state.numbers.set_of([node for node in nodes if not cache.problem(node)])
    return bool(feasible(cache.state, [claim], judged, policy=policy))


def prioritize(
    cache: ExtenderCache, policy: Policy, pod: Pod, nodes: Sequence[str]
) -> Mapping[str, int]:
    """A score from 0 to 10 for each of `nodes`; the best one has 10, the next one 9, …"""
    try:
        request = parse_limits(pod)
        claim = claim_request(pod, request) if request else None
    except Refused:
        claim = None
    if claim is None:
        return dict.fromkeys(nodes, 0)
    with cache.without(uid_of(pod)):
        known = cache.state.numbers.set_of(nodes)
        peers = _peers(cache, policy, pod, claim)
        best = rank(cache.state, [claim], known, policy=policy, peers=peers)
    scores = {node: max(0, _HIGHEST - place) for place, node in enumerate(best)}
    return {node: scores.get(node, 0) for node in nodes}


def place(
    cache: ExtenderCache, policy: Policy, pod: Pod, request: LimitRequest, node: str
) -> BoundPod:
    """The pod with the cards that it gets on `node`. Raises Refused with the reason where the node
    cannot serve it."""
    with cache.without(uid_of(pod)):
        problem = cache.problem(node)
        if problem:
            raise Refused(f"node {node}: {problem}")
        only = cache.state.numbers.bit(node)
        claim = claim_request(pod, request)
        peers = _peers(cache, policy, pod, claim)
        found = allocate(cache.state, [claim], only, policy=policy, peers=peers)
        if isinstance(found, FitError):
            of_sizes = _of_sizes(cache, request, node) if request.mode is Mode.DRS else ""
            raise Refused(f"node {node}: {of_sizes or found.explain()}")
    metadata = pod["metadata"]
    granted = [grant.device.card for grant in found.assignments[0]]
    cards = dict.fromkeys(PciAddress.parse(card[1]) for card in granted if card is not None)
    name = f"{metadata['namespace']}/{metadata['name']}"
    return BoundPod(uid_of(pod), name, request, tuple(cards), workload=pods.workload(pod))


def _peers(
    cache: ExtenderCache, policy: Policy, pod: Pod, claim: ClaimRequest
) -> Mapping[CardKey, int]:
    """What replicas of the same workload use, where that matters."""
    return cache.cards_of_replicas(pod) if policy.keeps_apart([claim]) else NO_PEERS


def _of_sizes(cache: ExtenderCache, request: LimitRequest, node: str) -> str:
    """The reason by instance sizes, where it says more than the allocator's."""
    missing = _sizes_without_profile(request, cache.cards(node))
    if missing or len(request.containers) == 1:
        return missing
    sizes = ", ".join(str(size) for _, size in request.containers)
    return f"no card has room for DRS instances of sizes {sizes} together"


def _sizes_without_profile(request: LimitRequest, cards: Sequence[NodeCard]) -> str:
    profiles = sorted({name for card in cards for name in card.profiles}, key=profile_size)
    known = {profile_size(name) for name in profiles}
    for _, size in request.containers:
        if profiles and size not in known:
            return f"no profile has size {size}; those of its cards are {', '.join(profiles)}"
    return ""
