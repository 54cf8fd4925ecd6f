"""From a decision to allocated claims: the writes of one pod, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import uuid4

from controller.allocator.allocate import Allocation
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.results import allocation_status
from controller.allocator.search_state import DeviceAssignment
from controller.cache import pods
from controller.cache.keys import Key, uid_of
from controller.reconcile.context import Context
from controller.write.commands import Answer, SettleUncertain, WriteAllocation
from dra_driver.kube.errors import Invalid
from dra_driver.model.claim import Object, allocation

_UNCERTAIN_RETRY = 1.0  # seconds
_FAILED_RETRY = 30.0  # seconds; the pod that failed is tried more and more slowly, up to this


class AllocationCommitter:
    """What is being written counts as allocated, from the decision until the server's answer."""

    def __init__(self, context: Context) -> None:
        self._context = context
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
        context.dispatcher.dispatch(WriteAllocation(key, planned, pod, read_pod=was_released))

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
        """What the server answered was taken in before, in this and in `on_settled`."""
        context, now = self._context, self._context.clock()
        for claim in answer.uncertain:  # the write may still arrive: until that is known it is held
            self._uncertain[uid_of(claim)] = claim
            context.queue.add(Key.of_claim(claim), now + _UNCERTAIN_RETRY)
        # Others would try in turn, each at once when another one has failed.
        pause = 0.0 if answer.error is None else _FAILED_RETRY
        self._conclude(command.key, command.claims, now + pause)
        allocated = sum(allocation(each) is not None for each in answer.claims)
        context.reporter.allocations.inc(allocated)
        if isinstance(answer.error, Invalid):  # it stays so until a person acts
            context.reporter.unsatisfied(command.pod, command.claims, str(answer.error))
        pod_uid = uid_of(command.pod)
        written = answer.error is None and not answer.pod_changed
        if written and context.has_pod(command.key, pod_uid):  # else nothing would forget it again
            uids = [uid_of(each) for each in command.claims]
            context.backoff.granted(pod_uid, uids, now, pods.verdict(command.pod))

    def on_settled(self, command: SettleUncertain, answer: Answer) -> None:
        if not answer.uncertain:
            for claim in command.claims:
                del self._uncertain[uid_of(claim)]
            self._conclude(command.key, command.claims, self._context.clock())

    def _conclude(self, key: Key, planned: Iterable[Object], free_at: float) -> None:
        """What is known of these claims counts again, and what was planned for them and not written
        is free from that time on. Their pods but `key` come up again then."""
        context, now = self._context, self._context.clock()
        for claim in planned:
            if not self.is_uncertain(claim):
                context.cache.forget(claim)
                # Its pod may have gone meanwhile, and then nobody else brings the claim up.
                context.queue.add(Key.of_claim(claim), now)
                if not self._is_allocated(claim):
                    context.queue.on_freed([claim], free_at)
            for user in map(pods.key_of, context.cache.pods_of(claim)):
                if user != key:
                    context.queue.add(user, free_at)

    def _is_allocated(self, claim: Object) -> bool:
        known = self._context.cache.get(Key.of_claim(claim))
        return (
            known is not None and uid_of(known) == uid_of(claim) and allocation(known) is not None
        )
