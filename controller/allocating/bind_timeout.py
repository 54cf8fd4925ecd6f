"""Takes back what a pod has and is not bound with: the clock starts at the allocation.

kube-scheduler may reserve a claim at the very moment of its release. Both write the claim's status
over the version that they read, so one of them gets a conflict (docs/dev/controller.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from controller.allocating.backoff import Allocated
from controller.allocating.bind_clock import UNUSED_LIMIT
from controller.allocating.clocks import Clocks
from controller.allocating.commands import Handover
from controller.allocating.deallocator import Deallocator, is_idle, is_unbound
from controller.cache import pods
from controller.cache.claims import (
    allocated_by_us,
    allocated_node,
    is_releasable,
    is_unreservable,
)
from controller.cache.keys import uid_of
from controller.cache.pod_groups import Unit
from controller.reconcile.context import Context
from dra_driver.model.claims.claim import Object, results

_FACTOR_FOR_OLD_VERDICT = 4
_BUSY_RETRY = 1.0  # seconds; a write for the gang is under way
_ALLOCATED_BY_OLD_SERVER = "it was allocated before Kubernetes 1.36, and cannot be reserved"


@dataclass(frozen=True, slots=True)
class _Limits:
    """Seconds after the allocation from which the devices go to a pod that can use them, and from
    which they are released in any case. `by_verdict`: because kube-scheduler said that the pod
    cannot run there."""

    for_others: float
    in_any_case: float
    by_verdict: bool


class BindTimeout:
    """One instance, one thread."""

    def __init__(self, context: Context, clocks: Clocks, deallocator: Deallocator) -> None:
        self._context = context
        self._backoff = clocks.backoff
        self._deallocator = deallocator
        self._clock = clocks.bind
        self._sight = clocks.sight
        self._patience = context.settings.scheduling_patience

    def check(self, pod: Object, claims: list[Object]) -> None:
        """All claims of the pod are allocated, `claims` by us: kube-scheduler binds it. If nobody
        binds it for too long, release what it holds, or what its gang holds."""
        context, key, now = self._context, pods.key_of(pod), self._context.clock()
        if pods.node_name(pod):
            self._on_bound(pod, now)
            self._deallocator.release_stranded(pod, claims)
            return
        old = filter(is_unreservable, claims) if pods.failed_reservation(pod) else ()
        if self._deallocator.release_all(pod, old, _ALLOCATED_BY_OLD_SERVER):
            return
        if self._deallocator.reclaimable(pod, claims, is_unbound):
            self._check_clock(pod, claims, now)
        elif any(map(is_releasable, claims)):  # other pods wait for them, and no event ends that
            context.queue.add(key, now + self._patience)

    def _check_clock(self, pod: Object, claims: list[Object], now: float) -> None:
        context, key = self._context, pods.key_of(pod)
        unit_uid, mine = context.cache.unit_uid(pod), self._allocated(pod, now)
        since = self._clock.allocated_at(unit_uid, mine.at)
        begin = max(since + self._clock.patience(now), self._clock.asked_until(unit_uid))
        if now < begin:
            context.queue.add(key, begin)
            return
        unit = context.cache.unit_of(pod)
        limits = self._limits(pod, claims, unit, mine)
        if now < since + limits.for_others:
            context.queue.add(key, since + limits.for_others)
        elif now >= since + limits.in_any_case:
            self._release(unit, pod, since, limits, None)
        elif (other := self._beneficiary(unit, now)) is not None:
            self._release(unit, pod, since, limits, other)
        else:
            again_at = min(since + limits.in_any_case, now + self._patience)
            self._clock.ask_again_at(unit_uid, again_at)
            context.queue.add(key, again_at)

    def _on_bound(self, pod: Object, now: float) -> None:
        backoff, uid = self._backoff, uid_of(pod)
        allocated_at = backoff.last_allocated(uid)
        if allocated_at is not None:
            unit = self._context.cache.unit_uid(pod)
            if unit == uid:  # a gang may wait for its other pods
                self._clock.record_binding(now - allocated_at, now)
            self._clock.forget(unit)
        backoff.forget_pod(uid)
        self._sight.forget(uid)
        self._clock.forget(uid)

    def _allocated(self, pod: Object, now: float) -> Allocated:
        otherwise = Allocated(now, pods.not_scheduled(pod))
        return self._backoff.allocated(uid_of(pod), otherwise)

    def _limits(self, pod: Object, claims: list[Object], unit: Unit, mine: Allocated) -> _Limits:
        patience = self._clock.patience(self._context.clock())
        verdict, is_binding = pods.verdict(pod), self._is_binding(unit)
        for_others = patience
        if is_binding or mine.binds_volumes:
            for_others = max(patience, pods.BINDING_LIMIT)
        elif verdict is not None and pods.missed_preemption(verdict):
            for_others = max(patience, UNUSED_LIMIT)
        by_verdict = (
            verdict is not None
            and unit.is_complete
            and not is_binding
            and bool(self._deallocator.reclaimable(pod, claims, is_idle))
        )
        if not by_verdict:
            return _Limits(for_others, max(for_others, UNUSED_LIMIT), by_verdict)
        # The verdict may be the one from before the allocation: kube-scheduler may not have tried
        # the pod since, as it may have many others to try.
        is_old = mine.condition == pods.not_scheduled(pod)
        in_any_case = max(for_others, patience * (_FACTOR_FOR_OLD_VERDICT if is_old else 1))
        return _Limits(for_others, in_any_case, by_verdict)

    def _is_binding(self, unit: Unit) -> bool:
        """Whether kube-scheduler has nominated the node of a claim for a pod that uses it. It does
        so before it binds the pod (since 1.35), and while it preempts other pods, when the
        condition is an old one."""
        return any(
            allocated_node(claim) == pods.nominated_node(user)
            for claims in self._held(unit, is_unbound).values()
            for claim in claims
            for user in self._context.cache.pods_of(claim)
        )

    def _beneficiary(self, unit: Unit, now: float) -> Object | None:
        """A waiting pod that could be served if the unit's devices were free, that cannot be served
        as it is, that no other release is under way for, and that no devices went to or fro before.
        For this question the devices are counted as free."""
        cache, queue = self._context.cache, self._context.queue
        claims = [claim for held in self._held(unit, is_unbound).values() for claim in held]
        if self._context.dispatcher.in_flight(*claims):
            return None
        nodes = self._context.nodes_of(each.pool for claim in claims for each in results(claim))
        before = set(queue.classes_served_by(nodes))
        try:
            for claim in claims:
                cache.assume(claim | {"status": {}})
            after = queue.classes_served_by(nodes)
        finally:
            for claim in claims:
                cache.forget(claim)
        waiting = (
            pod
            for pod_class in after
            if pod_class not in before
            for key in queue.members(pod_class)
            if (pod := cache.get(key)) is not None
        )
        return next((pod for pod in waiting if self._may_get(pod, unit, nodes, now)), None)

    def _may_get(self, pod: Object, unit: Unit, nodes: Collection[str], now: float) -> bool:
        other, avoided = self._context.cache.unit_uid(pod), self._backoff.nodes_in_backoff
        return (
            other != unit.uid
            and not self._clock.is_promised(uid_of(pod), now)
            and self._clock.paused_until(other, pods.not_scheduled(pod)) <= now
            and not self._clock.have_met(unit.uid, other)
            and not avoided(uid_of(pod), now).keys() >= set(nodes)
        )

    def _release(
        self, unit: Unit, pod: Object, since: float, limits: _Limits, other: Object | None
    ) -> None:
        """Release all that the unit holds since that time; for `other`, if there is one."""
        context, now = self._context, self._context.clock()
        by_verdict = other is None and limits.by_verdict
        held = self._held(unit, is_idle if by_verdict else is_unbound)
        if context.dispatcher.in_flight(*unit.pods, *(c for each in held.values() for c in each)):
            context.queue.add(pods.key_of(pod), now + _BUSY_RETRY)
            return
        handover, next_step = None, "Another node is tried"
        if not by_verdict:
            handover, next_step = Handover(unit.uid), self._pause(unit, pod, now)
        if other is not None:
            handover = Handover(unit.uid, context.cache.unit_uid(other), uid_of(other))
            self._clock.begin_handover(unit.uid, handover.heir, handover.pod, now)
            next_step = f"They are released for {pods.key_of(other)}, which waits. {next_step}"
        why = self._why_unbound(pod)
        for member in unit.pods:
            if claims := held[uid_of(member)]:
                key = pods.key_of(member)
                story = f"{key} held {_devices(claims)} for {now - since:.0f} s and was not bound"
                note = f"{story}, because {why}. {next_step}"
                self._deallocator.release(key, claims, why, note, handover)

    def _why_unbound(self, pod: Object) -> str:
        group = self._context.cache.groups.group_of(pod)
        if group is None or group.is_whole:
            return pods.why_unbound(pod)
        return (
            f"only {group.served} of the {group.min_count} pods that PodGroup {group.name} needs "
            "had devices"
        )

    def _pause(self, unit: Unit, pod: Object, now: float) -> str:
        """Begin the unit's pause; returns what happens next, in words."""
        condition = pods.not_scheduled(pod)
        is_alone = unit.uid == uid_of(pod)
        is_untried = is_alone and condition == self._allocated(pod, now).condition
        seconds = self._clock.begin_pause(
            unit.uid, now, until_tried=is_untried, condition=condition
        )
        unless = ", or until a scheduler reports on it" if is_untried else ""
        whom = pods.key_of(pod) if is_alone else "its group"
        return f"Nothing is allocated for {whom} in the next {seconds:.0f} s{unless}"

    def _held(self, unit: Unit, may_lose: Callable[[Object], bool]) -> dict[str, list[Object]]:
        """By the UIDs of its pods, what can be released; a claim of several pods once."""
        held: dict[str, list[Object]] = {}
        seen: set[str] = set()
        for pod in unit.pods:
            found = self._deallocator.reclaimable(pod, self._ours(pod), may_lose)
            held[uid_of(pod)] = [claim for claim in found if uid_of(claim) not in seen]
            seen |= set(map(uid_of, found))
        return held

    def _ours(self, pod: Object) -> list[Object]:
        """The pod's claims that we allocated."""
        return list(filter(allocated_by_us, (self._context.cache.claims_of(pod) or {}).values()))


def _devices(claims: Sequence[Object]) -> str:
    """Such as ``whole-0000-01-00-0 of node a``."""
    return "; ".join(
        f"{', '.join(each.device for each in results(claim))} of node {allocated_node(claim)}"
        for claim in claims
    )
