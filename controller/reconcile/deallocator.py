"""Taking allocations of ours back: from pods that fit nowhere with them, and from no pod at all."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cache import pods
from controller.cache.claims import allocated_node, is_orphan, is_releasable, is_stranded
from controller.cache.keys import Key, uid_of
from controller.reconcile.context import Context
from controller.write.commands import Answer, ReleaseAllocation
from dra_driver.model.claim import Object, allocation

_TIMES_FOR_AN_OLD_VERDICT = 4
# kube-scheduler tries a pod anew that it rejected five minutes ago, and looks for such pods every
# thirty seconds (pod-max-in-unschedulable-pods-duration, flushUnschedulablePodsLeftover; 1.36.3).
_SURELY_TRIED_AGAIN = 330.0


class Deallocator:
    """One step at a time: what it released is allocated again only after the quiet time."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def check_bind_timeout(self, key: Key, pod: Object, claims: list[Object]) -> None:
        """All claims are allocated, and kube-scheduler binds the pod. If it has said for too long
        that the pod fits nowhere, release all of the pod's allocations and try another node."""
        context = self._context
        if pods.node_name(pod):
            context.backoff.forget_pod(uid_of(pod))
            self._follow(key, pod, claims)
            return
        now, verdict = context.clock(), pods.verdict(pod)
        if not self._reclaimable(pod, claims):
            if any(map(is_releasable, claims)):  # other pods wait for them: nobody tells when not
                context.queue.add(key, now + context.patience)
            return
        since, before = context.backoff.granted_at(uid_of(pod), now, verdict)
        until = since + self._patience(verdict, before)
        if until > now:
            context.queue.add(key, until)
        elif verdict is not None and not self._is_nominated(pod, claims):
            self.release_all(key, pod, claims, "the scheduler does not place the pod there")
        else:
            context.queue.add(key, now + context.patience)

    def release_all(self, key: Key, pod: Object, claims: Iterable[Object], why: str) -> bool:
        """Take back all that is ours alone and unreserved; False where there is nothing to take
        back, or the pod is bound. `EventHandlers` remember the nodes."""
        if pods.node_name(pod):
            return False
        mine = self._reclaimable(pod, claims)
        if mine:
            self._context.dispatcher.dispatch(ReleaseAllocation(key, tuple(mine), why))
        return bool(mine)

    def release_orphan(self, key: Key, claim: Object) -> None:
        """Take the claim's allocation back where nobody will ever use it."""
        if is_orphan(claim, self._context.cache.pods_of(claim)):
            why = "the pod that it was allocated for is gone"
            self._context.dispatcher.dispatch(ReleaseAllocation(key, (claim,), why))

    def _follow(self, key: Key, pod: Object, claims: Iterable[Object]) -> None:
        """The pod is bound: take back what it can never use there, to be allocated on its node."""
        stranded = tuple(
            claim
            for claim in claims
            if allocated_node(claim) != pods.node_name(pod)
            and is_stranded(claim, self._context.cache.pods_of(claim))
        )
        if stranded:
            why = "the pods that reserved it are bound to other nodes"
            self._context.dispatcher.dispatch(ReleaseAllocation(key, stranded, why))

    def _patience(self, verdict: str | None, before: str | None) -> float:
        """Seconds that the scheduler has, by its word now and by that of before the allocation. The
        same word means that it may not have come to the pod again: many others may wait for it."""
        patience = self._context.patience
        if verdict is not None and pods.missed_preemption(verdict):
            return max(patience, _SURELY_TRIED_AGAIN)
        return patience * _TIMES_FOR_AN_OLD_VERDICT if verdict == before else patience

    def _is_nominated(self, pod: Object, claims: list[Object]) -> bool:
        """Whether kube-scheduler is at work on the pod's allocation: it nominates the node before
        it binds, and while pods with lower priority leave it (its condition is then an old one).
        When it gives up it takes that back."""
        return any(allocated_node(claim) == pods.nominated_node(pod) for claim in claims)

    def _reclaimable(self, pod: Object, claims: Iterable[Object]) -> list[Object]:
        """Our unreserved allocations that serve nobody: every other pod that names the claim
        fits nowhere either, or is none that kube-scheduler looks at."""
        return [
            claim
            for claim in claims
            if is_releasable(claim)
            and all(
                uid_of(user) == uid_of(pod) or _is_aside(user)
                for user in self._context.cache.pods_of(claim)
            )
        ]

    def on_release(self, command: ReleaseAllocation, answer: Answer) -> None:
        """What the server answered was taken in before."""
        context = self._context
        released = {uid_of(each) for each in answer.claims if allocation(each) is None}
        context.reporter.releases.inc(len(released & set(map(uid_of, command.claims))))
        for key in map(Key.of_claim, command.claims):
            # Its pod may have gone meanwhile; what failed for itself is tried more slowly.
            if key != command.key:
                context.queue.add(key, context.clock())


def _is_aside(pod: Object) -> bool:
    """Whether the pod is about to use nothing: nobody knows how long another's gate holds it."""
    waits = pods.is_unschedulable(pod) or pods.is_held_by_others(pod) or pods.is_deleting(pod)
    return waits and not pods.node_name(pod)
