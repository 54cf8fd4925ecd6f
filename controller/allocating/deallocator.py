"""Releases allocations of ours: of pods that cannot be bound with them, and of no pod at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.allocating.bind_clock import BindClock
from controller.allocating.commands import Handover, ReleaseAllocation
from controller.cache import pods
from controller.cache.claims import allocated_node, is_orphan, is_releasable, is_stranded
from controller.cache.keys import Key, Subject, uid_of
from controller.reconcile.context import Context
from controller.write.commands import Answer
from dra_driver.model.claims.claim import Object, allocation, claim_names


@dataclass(frozen=True, slots=True)
class Deallocator:
    """Releases; a released claim is allocated again after the quiet time, in another step."""

    context: Context
    bind_clock: BindClock

    def release_all(self, pod: Object, claims: Iterable[Object], why: str) -> bool:
        """Release those of the pod's claims that can be released; whether there are any. The
        event handlers record the nodes on which the pod failed."""
        claims = () if pods.node_name(pod) else tuple(self.reclaimable(pod, claims, is_idle))
        if claims:
            self.release(pods.key_of(pod), claims, why)
        return bool(claims)

    def release_orphan(self, key: Key, claim: Object) -> None:
        """Release the claim if no pod will ever use its allocation."""
        if is_orphan(claim, self.context.cache.pods_of(claim)):
            self.release(key, (claim,), "the pod that it was allocated for is gone")

    def release_unusable(self, pod: Object) -> None:
        """The pod cannot be bound as it is: it is being deleted, it or its group is held by others,
        or lacks a claim. Release those of its claims that no other pod waits for. They could be
        kept for ever: a pod that is being deleted stays until its last finalizer is removed."""
        context, namespace = self.context, pod["metadata"]["namespace"]
        names = filter(None, claim_names(pod).values())
        present = (context.cache.get(Key(Subject.CLAIM, namespace, name)) for name in names)
        claims = self.reclaimable(pod, filter(None, present), self._is_unusable)
        is_free = not context.dispatcher.in_flight(pod, *claims)
        if claims and is_free and not pods.node_name(pod):
            self.release(pods.key_of(pod), claims, "its pod cannot be bound")

    def release_stranded(self, pod: Object, claims: Iterable[Object]) -> None:
        """The pod is bound: release the claims that it can never use on its node."""
        stranded = [
            claim
            for claim in claims
            if allocated_node(claim) != pods.node_name(pod)
            and is_stranded(claim, self.context.cache.pods_of(claim))
        ]
        if stranded:
            why = "the pods that reserved it are bound to other nodes"
            self.release(pods.key_of(pod), stranded, why)

    def release(
        self,
        key: Key,
        claims: Iterable[Object],
        why: str,
        note: str = "",
        handover: Handover | None = None,
    ) -> None:
        """Release the claims; `why` and what follows are those of `ReleaseAllocation`."""
        once = {uid_of(each): each for each in claims}  # a pod may name a claim twice
        self.context.dispatcher.dispatch(
            ReleaseAllocation(
                key=key, claims=tuple(once.values()), why=why, note=note, handover=handover
            )
        )

    def on_released(self, command: ReleaseAllocation, answer: Answer) -> None:
        """The cache has what the server answered."""
        context, uids = self.context, set(map(uid_of, command.claims))
        released = [
            claim for claim in answer.claims if allocation(claim) is None and uid_of(claim) in uids
        ]
        context.reporter.releases.inc(len(released))
        if released and command.note:
            context.reporter.released(context.cache.get(command.key), released, command.note)
        if command.handover is not None:
            self._on_handover(command.handover, is_done=bool(released))
        for key in map(Key.of_claim, command.claims):
            # Its pod may have gone meanwhile. The command's own key backs off after an error.
            if key != command.key:
                context.queue.add(key, context.clock())

    def reclaimable(
        self, pod: Object, claims: Iterable[Object], may_lose: Callable[[Object], bool]
    ) -> list[Object]:
        """Our unreserved allocations that all other pods which name the claims may lose."""
        return [
            claim
            for claim in claims
            if is_releasable(claim)
            and all(
                uid_of(user) == uid_of(pod) or may_lose(user)
                for user in self.context.cache.pods_of(claim)
            )
        ]

    def _on_handover(self, handover: Handover, *, is_done: bool) -> None:
        if not is_done:
            self.bind_clock.on_not_released(handover.giver, handover.heir, handover.pod)

    def _is_unusable(self, pod: Object) -> bool:
        """Whether the pod, too, cannot be bound as it is."""
        if pods.node_name(pod):
            return False
        group = self.context.cache.groups.group_of(pod)
        return pods.is_aside(pod) or (group is not None and group.waits_for() is not None)


def is_unbound(pod: Object) -> bool:
    return not pods.node_name(pod)


def is_idle(pod: Object) -> bool:
    """Whether kube-scheduler found no node for the pod, or does not try it."""
    waits = pods.is_unschedulable(pod) or pods.is_held_by_others(pod) or pods.is_deleting(pod)
    return waits and not pods.node_name(pod)
