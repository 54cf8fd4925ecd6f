"""From a decision to allocated claims: the writes of one pod, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import uuid4

from controller.allocator.allocate import Allocation
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.results import allocation_status
from controller.allocator.search_state import DeviceAssignment
from controller.cache import pods
from controller.cache.keys import Key
from controller.reconcile.context import Context
from controller.reconcile.live_read_overlay import LiveReadOverlay
from controller.write.commands import (
    Answer,
    LiftGate,
    SettleUncertain,
    WriteAllocation,
    uid_of,
)
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Invalid
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object, allocation

_UNCERTAIN_RETRY = 1.0  # seconds
_FAILED_RETRY = 30.0  # seconds; the pod that failed is tried more and more slowly, up to this


class AllocationCommitter:
    """What is being written counts as allocated, from the decision until the server's answer."""

    def __init__(self, context: Context, overlay: LiveReadOverlay) -> None:
        self._context = context
        self._overlay = overlay
        self._uncertain: dict[str, Object] = {}  # by UID: a name may be another claim's by now

    def commit(
        self,
        key: Key,
        pod: Object,
        wanted: Sequence[ClaimRequest],
        granted: Allocation,
        classes: Mapping[str, Object],
    ) -> None:
        """Write the allocations of all claims of the pod, one after the other. If one of them has
        lost an allocation, the pod may have been bound meanwhile: it is read first."""
        context = self._context
        planned = tuple(
            self._planned(each, grants, granted.node, classes)
            for each, grants in zip(wanted, granted.grants, strict=True)
        )
        for claim in planned:
            context.cache.assume(claim)
        was_released = any(context.backoff.was_released(each.ref.uid) for each in wanted)
        gated = pods.has_our_gate(pod)
        context.dispatcher.dispatch(
            WriteAllocation(key, planned, pod, gated=gated, read_pod=was_released)
        )

    def _planned(
        self,
        wanted: ClaimRequest,
        grants: Sequence[DeviceAssignment],
        node: str,
        classes: Mapping[str, Object],
    ) -> Object:
        """The allocated claim, without a reservation: kube-scheduler adds it."""
        allocation = allocation_status(
            wanted,
            grants,
            node,
            classes,
            timestamp=self._context.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            new_share_id=lambda: str(uuid4()),
        )
        status = (wanted.claim.get("status") or {}) | {"allocation": allocation}
        return wanted.claim | {"status": status}

    def is_uncertain(self, claim: Object) -> bool:
        """Whether an earlier write to the claim may still arrive at the server."""
        return uid_of(claim) in self._uncertain

    def settle(self, key: Key) -> None:
        """Find out what became of writes to claims of this name, where that is not known."""
        for claim in [each for each in self._uncertain.values() if Key.of_claim(each) == key]:
            if not self._context.dispatcher.in_flight([uid_of(claim)]):
                self._context.dispatcher.dispatch(SettleUncertain(key, (claim,)))

    def on_allocation(self, command: WriteAllocation, answer: Answer) -> None:
        """Raises what ended the writes early."""
        context, now = self._context, self._context.clock()
        key, pod, planned = command.key, command.pod, command.claims
        self._learn_claims(answer)
        # Others would try in turn, each at once when another one has failed.
        pause = 0.0 if answer.error is None else _FAILED_RETRY
        self._hold_uncertain(answer.uncertain)
        for claim in planned:
            if not self.is_uncertain(claim):
                context.cache.forget(claim)
                # Its pod may have gone meanwhile, and then nobody else brings the claim up.
                context.queue.add(Key.of_claim(claim), now)
        for claim in planned:
            context.wake_users(claim, but=key, after=pause)
        free = [each for each in planned if not self._is_allocated(each)]
        context.queue.on_freed(free, now + pause)
        if answer.pod_changed:
            self._overlay.learn(pod, answer.pod)
            context.queue.add(key, now)
            return
        context.narrator.allocated(sum(allocation(each) is not None for each in answer.objects))
        if isinstance(answer.error, Invalid):  # it stays so until a person acts
            context.narrator.unsatisfied(pod, planned, str(answer.error))
        self._learn(answer)
        if context.has_pod(key, pods.uid_of(pod)):  # else nothing would forget it again
            uids = [uid_of(each) for each in planned]
            context.backoff.granted(pods.uid_of(pod), uids, now, pods.verdict(pod))
        context.queue.add(key, now)

    def _hold_uncertain(self, claims: Iterable[Object]) -> None:
        """These writes may still arrive: what they give out is held until that is known."""
        at = self._context.clock() + _UNCERTAIN_RETRY
        for claim in claims:
            self._uncertain[uid_of(claim)] = claim
            self._context.queue.add(Key.of_claim(claim), at)

    def on_settled(self, command: SettleUncertain, answer: Answer) -> None:
        """Raises what ended it: the claim stays uncertain."""
        context, [claim] = self._context, command.claims
        if not answer.uncertain:
            del self._uncertain[uid_of(claim)]
            self._learn_claims(answer)
            context.cache.forget(claim)
            context.queue.add(command.key, context.clock())  # it may be nobody's by now
            context.wake_users(claim)
            context.queue.on_freed([claim])
        self._learn(answer)

    def _is_allocated(self, claim: Object) -> bool:
        """Whether it still is, or may be."""
        known = self._context.cache.claim(Key.of_claim(claim))
        if self.is_uncertain(claim):
            return True
        return (
            known is not None and uid_of(known) == uid_of(claim) and allocation(known) is not None
        )

    def on_gate_lifted(self, command: LiftGate, answer: Answer) -> None:
        """Raises what ended the write."""
        self._learn(answer)
        if answer.pod is not None:  # else it is gone, and its watch tells
            # kube-scheduler may have spoken of it before the answer came.
            self._context.queue.add(command.key, self._context.clock())

    def _learn(self, answer: Answer) -> None:
        if answer.pod is not None:
            self._context.cache.apply(PODS, Change.MODIFIED, answer.pod)
        if answer.error is not None:
            raise answer.error

    def _learn_claims(self, answer: Answer) -> None:
        for claim in answer.objects:
            self._context.cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, claim)
