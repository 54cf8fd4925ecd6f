"""From a decision to allocated claims: the writes for one pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from controller.allocating.backoff import Allocated
from controller.allocating.clocks import Clocks
from controller.allocating.commands import FenceClaim, WriteAllocation
from controller.cache import pods
from controller.cache.claims import allocated_by_us
from controller.cache.keys import Key, uid_of
from controller.cache.pod_terms import sequence_of
from controller.placer.outcome import Placed
from controller.reconcile.context import Context
from controller.write.commands import Answer, Command
from dra_driver.kube.errors import Invalid
from dra_driver.model.claims.claim import Object, allocation, results

_UNCERTAIN_RETRY = 1.0  # seconds
_FAILED_RETRY = 30.0  # seconds; the pod whose write failed backs off up to as long


@dataclass(frozen=True, slots=True)
class AllocationCommitter:
    """From the decision until the server's answer, what is written counts as allocated. `now`
    returns the time of the wall clock."""

    context: Context
    clocks: Clocks
    now: Callable[[], datetime]

    def commit(self, pod: Object, placed: Placed, *, binds_volumes: bool) -> None:
        """Write the allocations of all claims of the pod. If a claim lost an allocation before,
        the pod may have been bound meanwhile: it is read first. The gate of a pod in a group is
        lifted in another step, with those of the group."""
        context = self.context
        timestamp = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        # Without reservations: kube-scheduler adds them.
        claims = placed.claims(context.cache.state().classes, timestamp)
        for claim in claims:
            context.cache.assume(claim)
        self.clocks.sight.begin_allocation(uid_of(pod), placed.node)
        was_released = any(self.clocks.backoff.was_released(uid_of(claim)) for claim in claims)
        context.dispatcher.dispatch(
            WriteAllocation(
                key=pods.key_of(pod),
                sequence=sequence_of(pod),
                claims=tuple(claims),
                pod=pod,
                read_pod=was_released,
                lifts_gate=context.cache.groups.group_of(pod) is None,
                binds_volumes=binds_volumes,
            )
        )

    def fence_uncertain(self, key: Key) -> None:
        """Fence the claims of that name whose write the server did not answer."""
        for claim in self.context.dispatcher.uncertain():
            if Key.of_claim(claim) == key:
                self.context.dispatcher.dispatch(FenceClaim(key=key, claims=(claim,)))

    def on_written(self, command: WriteAllocation, answer: Answer) -> None:
        """The server has answered the command, and the cache has what it answered."""
        now = self.context.clock()
        for claim in answer.uncertain:
            self.context.queue.add(Key.of_claim(claim), now + _UNCERTAIN_RETRY)
        # If other pods got the devices at once, the same error could fail one after the other.
        self.release_assumed(command, now if answer.error is None else now + _FAILED_RETRY)
        self._report(command, answer)
        if answer.error is None and not answer.pod_changed:
            self._record_allocation(command, now)
        self._record_releases(answer.claims, now)

    def release_assumed(self, command: Command, free_at: float) -> None:
        """The command's claims count again as the watch reported them. Devices that were decided
        on and not allocated are free from `free_at` on, and other pods that name the claims are
        reconciled then."""
        context, now = self.context, self.context.clock()
        for claim in command.claims:
            if not context.dispatcher.in_flight(claim):
                context.cache.forget(claim)
                # If its pod was deleted meanwhile, no other event reconciles the claim.
                context.queue.add(Key.of_claim(claim), now)
                present = self._present(claim)
                if present is None or allocation(present) is None:
                    nodes = context.nodes_of(each.pool for each in results(claim))
                    context.queue.on_nodes_changed(nodes, free_at)
            for user in map(pods.key_of, context.cache.pods_of(claim)):
                if user != command.key:
                    context.queue.add(user, free_at)

    def _report(self, command: WriteAllocation, answer: Answer) -> None:
        """Count the allocations, and write an event about those that are refused until a person
        acts."""
        reporter = self.context.reporter
        # After a conflict the claim is as somebody else wrote it.
        reporter.allocations.inc(sum(map(allocated_by_us, answer.claims)))
        if answer.error is None:
            reporter.allocation_seconds.observe(pods.age(command.pod, self.now()))
        elif isinstance(answer.error, Invalid):
            reporter.unsatisfied(command.pod, command.claims, str(answer.error))

    def _record_allocation(self, command: WriteAllocation, now: float) -> None:
        """The clock until the pod is bound begins. Nothing is recorded about a deleted pod, because
        no event would end the record."""
        context, uid = self.context, uid_of(command.pod)
        if context.cache.present(command.key, uid) is None:
            return
        allocated = Allocated(now, pods.not_scheduled(command.pod), command.binds_volumes)
        self.clocks.backoff.record_allocation(uid, list(map(uid_of, command.claims)), allocated)
        self.clocks.bind.record_allocation(context.cache.unit_uid(command.pod), uid, now)

    def _record_releases(self, answered: Iterable[Object], now: float) -> None:
        """Somebody may have cleared an allocation before its answer was read."""
        for claim in filter(allocation, answered):
            present = self._present(claim)
            if present is not None and not allocation(present):
                self.clocks.backoff.record_release(uid_of(claim), now)

    def _present(self, claim: Object) -> Object | None:
        return self.context.cache.present(Key.of_claim(claim), uid_of(claim))
