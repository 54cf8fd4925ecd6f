"""Where a claim that lost its allocation may be allocated again before its quiet time has ended.

After a conflict kube-scheduler reads the claim again and adds its reservation to the allocation
that it finds. If that is of another node, the pod is bound apart from its claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from controller.allocating.clocks import Clocks
from controller.allocating.node_order import Later
from controller.cache import nodes, pods
from controller.cache.cache import ClusterCache
from controller.cache.keys import uid_of
from controller.placer.outcome import Placed, Unplaced
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object, claim_names

_AT_ONCE: Final = 64
"""Nodes that are tried for a pod without a quiet time between them: a pod that fits nowhere must
not write to the API server for ever."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Until `until` (0 if the quiet time has ended) a pod's claims may be allocated on the node
    `only`, on none if that is empty, and on any if it is None."""

    until: float
    only: str | None

    @property
    def selectors(self) -> tuple[Object, ...]:
        """The node selector (core/v1) of that node."""
        return (nodes.only_on(self.only),) if self.only else ()

    def allows(self, outcome: Placed | Unplaced, later: Later) -> bool:
        """Whether the outcome is acted on now. Nodes that will hardly do are not tried in haste."""
        if not self.until:
            return True
        if isinstance(outcome, Unplaced):
            return False
        if self.only is None:
            return not later.is_doubtful(outcome.node)
        return outcome.node == self.only


class QuietTime:
    """One instance, one thread."""

    def __init__(self, cache: ClusterCache, clocks: Clocks) -> None:
        self._cache = cache
        self._backoff = clocks.backoff
        self._sight = clocks.sight

    def of(self, asked: PodClaims, now: float) -> Quiet:
        """For the pod's unallocated claims."""
        ends = {claim.ref.uid: self._backoff.quiet_until(claim.ref.uid) for claim in asked.wanted}
        quiet = [uid for uid, end in ends.items() if end > now]
        if not quiet:
            return Quiet(0.0, None)
        until = max(ends.values())
        if self._is_known_to_be_idle(asked):
            return Quiet(until, None)
        # On the node of before, a late reservation does no harm.
        before = {self._backoff.released_node(uid) for uid in quiet}
        return Quiet(until, before.pop() if len(before) == 1 else "")

    def _is_known_to_be_idle(self, asked: PodClaims) -> bool:
        """Whether kube-scheduler has seen the release, and no reservation can be under way. Of
        other pods that name a claim, of groups, and of claims that other allocators serve, its
        verdicts about this pod prove nothing."""
        pod, uid = asked.pod, uid_of(asked.pod)
        return (
            self._sight.has_seen_release(uid)
            and len(self._backoff.failed_nodes(uid)) <= _AT_ONCE
            and pods.group_name(pod) is None
            and not self._has_implicit_claim(pod)
            and len(asked.ours) == len(claim_names(pod))
            and all(self._is_own(pod, claim) for claim in asked.ours.values())
        )

    def _is_own(self, pod: Object, claim: Object) -> bool:
        """Whether the claim was made for the pod from a template, and no other pod names it."""
        is_made_for_it = pods.owning_pod(claim) == uid_of(pod)
        return is_made_for_it and all(
            uid_of(user) == uid_of(pod) for user in self._cache.pods_of(claim)
        )

    def _has_implicit_claim(self, pod: Object) -> bool:
        """Whether kube-scheduler makes a claim for what the containers ask of a DeviceClass."""
        classes = self._cache.state().classes.values()
        mapped = {found["spec"].get("extendedResourceName") for found in classes}
        return pods.asks_for_class(pod, mapped)
