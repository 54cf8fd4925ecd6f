"""Groups of pods (PodGroup) with GCUs: where they run, and how many of their pods wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.cache import pods
from controller.cache.keys import full_name
from controller.cache.pod_groups import min_count
from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object, allocation, results
from kubectl_gcu.cluster.claims import claims_of
from kubectl_gcu.cluster.state import ClusterState


@dataclass(frozen=True, slots=True)
class GroupView:
    """`min_count` pods are bound together: 0 where each is bound by itself, None where the
    PodGroup cannot be read or does not exist. `nodes` has how many pods each node has. So many
    others are `gated`, or wait `ungated`."""

    name: str
    min_count: int | None
    nodes: tuple[tuple[str, int], ...]
    gated: int
    ungated: int

    @property
    def bound(self) -> int:
        return sum(count for _, count in self.nodes)

    def __str__(self) -> str:
        needs = f" of {self.min_count} needed" if self.min_count else ""
        on = ", ".join(f"{node} ({count})" for node, count in self.nodes)
        parts = [f"{self.bound}{needs} bound{f': {on}' if on else ''}"]
        parts += [f"{self.gated} held by the gate"] if self.gated else []
        parts += [f"{self.ungated} not bound by the scheduler"] if self.ungated else []
        return f"podgroup {self.name}: {'; '.join(parts)}"


def groups(state: ClusterState, node: str = "") -> Iterator[GroupView]:
    """By name; with a `node` those that have a pod there. A pod that has ended or is being deleted
    does not count."""
    claims = {full_name(each): each for each in state.claims}
    needed = {full_name(each): min_count(each) for each in state.groups}
    members: defaultdict[str, list[Object]] = defaultdict(list)
    for pod in state.pods:
        name = pods.group_name(pod)
        if name and not pods.is_done(pod) and not pods.is_deleting(pod):
            members[name].append(pod)
    for name, its in sorted(members.items()):
        view = _view(name, needed.get(name), its)
        is_shown = not node or node in dict(view.nodes)
        if is_shown and any(_may_be_ours(pod, claims) for pod in its):
            yield view


def _view(name: str, needed: int | None, members: Sequence[Object]) -> GroupView:
    nodes = Counter(filter(None, map(pods.node_name, members)))
    waiting = [pod for pod in members if not pods.node_name(pod)]
    gated = sum(map(pods.has_our_gate, waiting))
    return GroupView(name, needed, tuple(sorted(nodes.items())), gated, len(waiting) - gated)


def _may_be_ours(pod: Object, claims: Mapping[str, Object]) -> bool:
    """A claim that has no devices yet may be for this driver."""
    if limit_names(pod) or pods.has_our_gate(pod):
        return True
    its = claims_of(pod, claims).values()
    return any(claim is None or allocation(claim) is None or results(claim) for claim in its)
