"""Releases allocations of ours: of pods that cannot be bound with them, and of no pod at all."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cache import pods
from controller.cache.claims import (
    allocated_node,
    is_orphan,
    is_releasable,
    is_stranded,
    is_unreservable,
)
from controller.cache.keys import Key, Subject, uid_of
from controller.reconcile.context import Context
from controller.write.commands import Answer, ReleaseAllocation
from dra_driver.model.claims.claim import Object, allocation, claim_names

_FACTOR_FOR_OLD_VERDICT = 4
# kube-scheduler tries a pod again five minutes after it rejected the pod, and checks for such pods
# every thirty seconds (pod-max-in-unschedulable-pods-duration, flushUnschedulablePodsLeftover;
# 1.36.3).
_TRIED_AGAIN_AFTER = 330.0
_ALLOCATED_BY_OLD_SERVER = "it was allocated before Kubernetes 1.36, and cannot be reserved"


class Deallocator:
    """Releases; a released claim is allocated again after the quiet time, in another step."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._patience = context.settings.scheduling_patience

    def check_bind_timeout(self, pod: Object, claims: list[Object]) -> None:
        """All claims of the pod are allocated: kube-scheduler binds it. If kube-scheduler has
        found no node for too long, release the claims, so that another node is tried."""
        context, key = self._context, pods.key_of(pod)
        if pods.node_name(pod):
            context.backoff.forget_pod(uid_of(pod))
            self._release_stranded(pod, claims)
            return
        old = filter(is_unreservable, claims) if pods.failed_reservation(pod) else ()
        if self.release_all(pod, old, _ALLOCATED_BY_OLD_SERVER):
            return
        now, verdict = context.clock(), pods.verdict(pod)
        if not self._reclaimable(pod, claims):
            if any(map(is_releasable, claims)):  # other pods wait for them, and no event ends that
                context.queue.add(key, now + self._patience)
            return
        since, before = context.backoff.allocated_at(uid_of(pod), now, verdict)
        until = since + self._bind_timeout(verdict, before)
        if until > now:
            context.queue.add(key, until)
        elif verdict is not None and not self._is_nominated(pod, claims):
            self.release_all(pod, claims, "kube-scheduler does not bind the pod there")
        else:
            context.queue.add(key, now + self._patience)

    def release_all(self, pod: Object, claims: Iterable[Object], why: str) -> bool:
        """Release those of the pod's claims that can be released; whether there are any. The
        event handlers record the nodes on which the pod failed."""
        claims = () if pods.node_name(pod) else tuple(self._reclaimable(pod, claims))
        if claims:
            self._release(pods.key_of(pod), claims, why)
        return bool(claims)

    def release_orphan(self, key: Key, claim: Object) -> None:
        """Release the claim if no pod will ever use its allocation."""
        if is_orphan(claim, self._context.cache.pods_of(claim)):
            self._release(key, (claim,), "the pod that it was allocated for is gone")

    def release_unusable(self, pod: Object) -> None:
        """The pod cannot be bound as it is: it is being deleted, it is held by others, or lacks a
        claim. Release those of its claims that no other pod waits for. They could be kept for ever:
        a pod that is being deleted stays until its last finalizer is removed."""
        context, namespace = self._context, pod["metadata"]["namespace"]
        names = filter(None, claim_names(pod).values())
        found = (context.cache.get(Key(Subject.CLAIM, namespace, name)) for name in names)
        claims = [
            each
            for each in found
            if each is not None
            and is_releasable(each)
            and all(uid_of(user) == uid_of(pod) for user in context.cache.pods_of(each))
        ]
        if not context.dispatcher.in_flight(pod, *claims):
            self.release_all(pod, claims, "its pod cannot be bound")

    def on_released(self, command: ReleaseAllocation, answer: Answer) -> None:
        """The cache has what the server answered."""
        context = self._context
        released = {uid_of(each) for each in answer.claims if allocation(each) is None}
        context.reporter.releases.inc(len(released & set(map(uid_of, command.claims))))
        for key in map(Key.of_claim, command.claims):
            # Its pod may have gone meanwhile. The command's own key backs off after an error.
            if key != command.key:
                context.queue.add(key, context.clock())

    def _release_stranded(self, pod: Object, claims: Iterable[Object]) -> None:
        """The pod is bound: release the claims that it can never use on its node."""
        stranded = tuple(
            claim
            for claim in claims
            if allocated_node(claim) != pods.node_name(pod)
            and is_stranded(claim, self._context.cache.pods_of(claim))
        )
        if stranded:
            why = "the pods that reserved it are bound to other nodes"
            self._release(pods.key_of(pod), stranded, why)

    def _release(self, key: Key, claims: tuple[Object, ...], why: str) -> None:
        once = {uid_of(each): each for each in claims}  # a pod may name a claim twice
        self._context.dispatcher.dispatch(
            ReleaseAllocation(key=key, claims=tuple(once.values()), why=why)
        )

    def _bind_timeout(self, verdict: str | None, before: str | None) -> float:
        """Seconds that kube-scheduler has to bind the pod. If its verdict is the one from before
        the allocation, it may not have tried the pod since: it may have many others to try."""
        if verdict is not None and pods.missed_preemption(verdict):
            return max(self._patience, _TRIED_AGAIN_AFTER)
        return self._patience * (_FACTOR_FOR_OLD_VERDICT if verdict == before else 1)

    def _is_nominated(self, pod: Object, claims: list[Object]) -> bool:
        """Whether kube-scheduler has nominated the node of a claim. It does so before it binds the
        pod, and while it preempts other pods, when the pod's condition is an old one."""
        return any(allocated_node(claim) == pods.nominated_node(pod) for claim in claims)

    def _reclaimable(self, pod: Object, claims: Iterable[Object]) -> list[Object]:
        """Our unreserved allocations that no other pod is about to use either."""
        return [
            claim
            for claim in claims
            if is_releasable(claim)
            and all(
                uid_of(user) == uid_of(pod) or _is_idle(user)
                for user in self._context.cache.pods_of(claim)
            )
        ]


def _is_idle(pod: Object) -> bool:
    """Whether kube-scheduler found no node for the pod, or does not try it."""
    waits = pods.is_unschedulable(pod) or pods.is_held_by_others(pod) or pods.is_deleting(pod)
    return waits and not pods.node_name(pod)
