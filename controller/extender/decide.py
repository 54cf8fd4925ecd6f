"""Filters and scores nodes for a pod, and chooses its cards. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.packing.policy import Policy
from controller.cache import pods
from controller.cache.keys import full_name, uid_of
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.claim_for_limits import claims_of
from controller.extender.limit_request import LimitRequest, parse_limits
from controller.extender.node_allocations import BoundPod
from controller.filter.node_filter import FeasibleNodes
from controller.placer.outcome import Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size

UNREPORTED: Final = "the node's agent has not reported its cards"
_HIGHEST: Final = 10  # extender/v1, MaxExtenderPriority


@dataclass(frozen=True, slots=True)
class Filtered:
    """`unfit` has the reason for each other node; nodes of a kind share one text."""

    fit: tuple[str, ...]
    unfit: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OfferedNodes:
    """The nodes that kube-scheduler asks about: it has applied the constraints of the pod and of
    its volumes."""

    feasible: NodeSet

    def feasible_nodes(self, *_: object) -> FeasibleNodes:
        """All of them, whatever the pod is."""
        return FeasibleNodes(self.feasible, 0, "")


def filter_nodes(
    cluster: AnnotatedCluster, policy: Policy, pod: Object, nodes: Sequence[str]
) -> Filtered:
    """Which of `nodes` can give the pod all that it requests; both parts are in the order of
    `nodes`."""
    try:
        request = parse_limits(pod)
        if request is None:
            return Filtered(tuple(nodes), {})
        asked = claims_of(pod, request)
    except Refused as error:
        return Filtered((), dict.fromkeys(nodes, str(error)))
    with cluster.without(uid_of(pod)):
        offered = cluster.state().numbers.set_of(nodes)
        placer = Placer(cluster, OfferedNodes(offered), policy)
        others = offered & ~placer.serving(asked)
        unfit = _reasons(cluster, placer, asked, request, others) if others else {}
    return Filtered(
        tuple(node for node in nodes if node not in unfit),
        {node: unfit[node] for node in nodes if node in unfit},
    )


def fits(cluster: AnnotatedCluster, policy: Policy, pod: Object, nodes: Collection[str]) -> bool:
    """Whether any of `nodes` can give the pod all that it requests."""
    try:
        asked = _asked(pod)
    except Refused:
        return False
    if asked is None:
        return bool(nodes)
    return bool(_placer(cluster, policy, nodes).serving(asked))


def prioritize(
    cluster: AnnotatedCluster, policy: Policy, pod: Object, nodes: Sequence[str]
) -> Mapping[str, int]:
    """A score from 0 to 10 for each of `nodes`; the best one has 10, the next one 9, …"""
    try:
        asked = _asked(pod)
    except Refused:
        asked = None
    if asked is None:
        return dict.fromkeys(nodes, 0)
    with cluster.without(uid_of(pod)):
        best = _placer(cluster, policy, nodes).rank(asked)
    scores = {node: max(0, _HIGHEST - place) for place, node in enumerate(best)}
    return {node: scores.get(node, 0) for node in nodes}


def place(
    cluster: AnnotatedCluster, policy: Policy, pod: Object, request: LimitRequest, node: str
) -> BoundPod:
    """The pod with the cards that it gets on `node`. Raises Refused with the reason where the node
    cannot serve it."""
    asked = claims_of(pod, request)
    with cluster.without(uid_of(pod)):
        placer = _placer(cluster, policy, [node])
        outcome = placer.place(asked)
        if isinstance(outcome, Unplaced):
            its = cluster.state().numbers.bit(node)
            reasons = _reasons(cluster, placer, asked, request, its)
            raise Refused(f"node {node}: {reasons[node]}")
    given = [assignment.device.card for assignment in outcome.assignments[0]]
    cards = dict.fromkeys(PciAddress.parse(card[1]) for card in given if card is not None)
    workload = pods.workload(pod)
    uid, name = uid_of(pod), full_name(pod)
    return BoundPod(uid, name, node, request, tuple(cards), kubelet_uid=uid, workload=workload)


def _asked(pod: Object) -> PodClaims | None:
    """What the pod requests; None if that is no GCU. Raises Refused for what no node can give."""
    request = parse_limits(pod)
    return None if request is None else claims_of(pod, request)


def _placer(cluster: AnnotatedCluster, policy: Policy, nodes: Collection[str]) -> Placer:
    return Placer(cluster, OfferedNodes(cluster.state().numbers.set_of(nodes)), policy)


def _reasons(
    cluster: AnnotatedCluster,
    placer: Placer,
    asked: PodClaims,
    request: LimitRequest,
    nodes: NodeSet,
) -> dict[str, str]:
    """By node, why it cannot serve the pod."""
    reasons, inventory = placer.reasons(asked, nodes), cluster.state().inventory
    pools, problems = inventory.pools, inventory.problems
    of_sizes = lru_cache(partial(_of_sizes, request))
    for node in reasons:
        if pool_name(node) not in pools:
            reasons[node] = UNREPORTED
        elif request.mode is Mode.DRS and node not in problems:
            reasons[node] = of_sizes(cluster.profiles(node)) or reasons[node]
    return reasons


def _of_sizes(request: LimitRequest, profiles: Sequence[str]) -> str:
    """Why cards with these DRS profiles cannot serve the request, by the sizes of its instances;
    empty where the allocator's reason says more."""
    sizes = [size for _, size in request.containers]
    known = {profile_size(name) for name in profiles}
    unknown = [size for size in sizes if size not in known] if profiles else []
    if unknown:
        return f"no profile has size {unknown[0]}; those of its cards are {', '.join(profiles)}"
    if len(sizes) == 1:
        return ""
    return f"no card has room for DRS instances of sizes {', '.join(map(str, sizes))} together"
