"""From a decision to allocated claims: the writes for one pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import uuid4

from controller.allocator.allocate import Allocation
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.results import allocation_status
from controller.cache import pods
from controller.cache.claims import allocated_by_us
from controller.cache.keys import Key, uid_of
from controller.queue.backoff import Allocated
from controller.reconcile.context import Context
from controller.write.commands import Answer, Command, FenceClaim, WriteAllocation
from dra_driver.kube.errors import Invalid
from dra_driver.model.claims.claim import Object, allocation, results

_UNCERTAIN_RETRY = 1.0  # seconds
_FAILED_RETRY = 30.0  # seconds; the pod whose write failed backs off up to as long


class AllocationCommitter:
    """From the decision until the server's answer, what is written counts as allocated. `now`
    returns the time of the wall clock."""

    def __init__(self, context: Context, now: Callable[[], datetime]) -> None:
        self._context = context
        self._now = now

    def commit(
        self,
        pod: Object,
        wanted: Sequence[ClaimRequest],
        decision: Allocation,
        *,
        binds_volumes: bool,
    ) -> None:
        """Write the allocations of all claims of the pod. If a claim lost an allocation before,
        the pod may have been bound meanwhile: it is read first. The gate of a pod in a group is
        lifted in another step, with those of the group."""
        context = self._context
        timestamp = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        claims: list[Object] = []
        for each, devices in zip(wanted, decision.assignments, strict=True):
            # Without a reservation: kube-scheduler adds it.
            status = (each.claim.get("status") or {}) | {
                "allocation": allocation_status(
                    each,
                    devices,
                    decision.node,
                    context.cache.state().classes,
                    timestamp=timestamp,
                    new_share_id=lambda: str(uuid4()),
                )
            }
            claims.append(each.claim | {"status": status})
            context.cache.assume(claims[-1])
        was_released = any(context.backoff.was_released(each.ref.uid) for each in wanted)
        key = pods.key_of(pod)
        context.dispatcher.dispatch(
            WriteAllocation(
                key=key,
                claims=tuple(claims),
                pod=pod,
                read_pod=was_released,
                lifts_gate=context.cache.groups.group_of(pod) is None,
                binds_volumes=binds_volumes,
            )
        )

    def fence_uncertain(self, key: Key) -> None:
        """Fence the claims of that name whose write the server did not answer."""
        for claim in self._context.dispatcher.uncertain():
            if Key.of_claim(claim) == key:
                self._context.dispatcher.dispatch(FenceClaim(key=key, claims=(claim,)))

    def on_written(self, command: WriteAllocation, answer: Answer) -> None:
        """The cache has what the server answered."""
        context, now = self._context, self._context.clock()
        for claim in answer.uncertain:
            context.queue.add(Key.of_claim(claim), now + _UNCERTAIN_RETRY)
        # If other pods got the devices at once, the same error could fail one after the other.
        self.forget(command, now if answer.error is None else now + _FAILED_RETRY)
        # After a conflict the claim is as somebody else wrote it.
        context.reporter.allocations.inc(sum(map(allocated_by_us, answer.claims)))
        if answer.error is None:
            context.reporter.allocation_seconds.observe(pods.age(command.pod, self._now()))
        if isinstance(answer.error, Invalid):  # until a person acts
            context.reporter.unsatisfied(command.pod, command.claims, str(answer.error))
        pod, uid = context.cache.get(command.key), uid_of(command.pod)
        is_there = pod is not None and uid_of(pod) == uid  # else nobody would forget the record
        if answer.error is None and not answer.pod_changed and is_there:
            uids = [uid_of(each) for each in command.claims]
            condition = pods.not_scheduled(command.pod)
            allocated = Allocated(now, condition, command.binds_volumes)
            context.backoff.record_allocation(uid, uids, allocated)
            unit = context.cache.unit_uid(command.pod)
            context.bind_clock.record_allocation(unit, uid, now)
        for each in filter(allocation, answer.claims):
            # Somebody may have cleared it before the answer was read.
            known = context.cache.get(Key.of_claim(each))
            if known is not None and uid_of(known) == uid_of(each) and not allocation(known):
                context.backoff.record_release(uid_of(each), now)

    def forget(self, command: Command, free_at: float) -> None:
        """The claims count again as the cache has them. What was decided and not written is free
        from that time on: then other pods that name the claims are reconciled."""
        context, now = self._context, self._context.clock()
        for claim in command.claims:
            if not context.dispatcher.in_flight(claim):
                context.cache.forget(claim)
                # If its pod has gone meanwhile, no other event reconciles the claim.
                context.queue.add(Key.of_claim(claim), now)
                known = context.cache.get(Key.of_claim(claim))
                is_same = known is not None and uid_of(known) == uid_of(claim)
                if known is None or not is_same or allocation(known) is None:
                    nodes = context.nodes_of(each.pool for each in results(claim))
                    context.queue.on_nodes_changed(nodes, free_at)
            for user in map(pods.key_of, context.cache.pods_of(claim)):
                if user != command.key:
                    context.queue.add(user, free_at)
