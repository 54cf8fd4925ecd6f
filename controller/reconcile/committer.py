"""From a decision to allocated claims: the writes of one pod, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from controller.allocator.allocate import Allocation
from controller.allocator.request import Wanted
from controller.cache import pods
from controller.cache.keys import Key
from controller.reconcile.context import Context
from controller.reconcile.live_read_overlay import LivePods
from controller.write.claim_writer import Stored
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Invalid
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object, allocation

_UNCERTAIN_RETRY = 1.0  # seconds
_FAILED_RETRY = 30.0  # seconds; the pod that failed is tried more and more slowly, up to this


class Grants:
    """What is being written counts as held, from the decision on until the server's word."""

    def __init__(self, context: Context, live_pods: LivePods) -> None:
        self._context = context
        self._live_pods = live_pods
        self._uncertain: dict[str, Object] = {}  # by UID: a name may be another claim's by now

    def begin(
        self,
        key: Key,
        pod: Object,
        wanted: Sequence[Wanted],
        granted: Allocation,
        classes: Mapping[str, Object],
    ) -> None:
        """Write the allocations of all claims of the pod, one after the other. Where one of them
        has lost its allocation, the pod may have been bound meanwhile: it is read before."""
        context = self._context
        planned = [
            context.writer.planned(each, grants, granted.node, classes)
            for each, grants in zip(wanted, granted.grants, strict=True)
        ]
        for claim in planned:
            context.cache.assume(claim)
        gated = pod if pods.has_our_gate(pod) else None
        again = any(context.backoff.was_released(each.ref.uid) for each in wanted)
        only_for = pod if again else None
        context.writes.begin(
            key,
            [pods.uid_of(pod), *(each.ref.uid for each in wanted)],
            partial(context.writer.allocate, planned, gated, only_for=only_for),
            partial(self._written, key, pod, planned),
            # Nobody knows what was written before that.
            partial(self._hold_uncertain, planned),
        )

    def lift_gate(self, key: Key, pod: Object) -> None:
        """Nothing of ours keeps the pod from being scheduled."""
        self._context.writes.begin(
            key,
            [pods.uid_of(pod)],
            partial(self._context.writer.lift_gate, pod),
            partial(self._lifted, key),
        )

    def is_uncertain(self, claim: Object) -> bool:
        """Whether an earlier write to the claim may still arrive at the server."""
        return _uid(claim) in self._uncertain

    def settle(self, key: Key) -> None:
        """Find out what became of writes to claims of this name, where that is not known."""
        for claim in [each for each in self._uncertain.values() if Key.of_claim(each) == key]:
            if not self._context.writes.is_busy([_uid(claim)]):
                self._context.writes.begin(
                    key,
                    [_uid(claim)],
                    partial(self._context.writer.settle, claim),
                    partial(self._settled, key, claim),
                )

    def _written(self, key: Key, pod: Object, planned: Sequence[Object], stored: Stored) -> None:
        context, now = self._context, self._context.clock()
        self._learn_claims(stored)
        # Others would try in turn, each at once when another one has failed.
        pause = 0.0 if stored.error is None else _FAILED_RETRY
        self._hold_uncertain(stored.uncertain)
        for claim in planned:
            if not self.is_uncertain(claim):
                context.cache.forget(claim)
                # Its pod may have gone meanwhile, and then nobody else brings the claim up.
                context.queue.add(Key.of_claim(claim), now)
        for claim in planned:
            context.wake_users(claim, but=key, after=pause)
        free = [each for each in planned if not self._is_allocated(each)]
        context.queue.on_freed(free, now + pause)
        if stored.late:
            self._live_pods.learn(pod, stored.pod)
            context.queue.add(key, now)
            return
        context.narrator.allocated(sum(allocation(each) is not None for each in stored.claims))
        if isinstance(stored.error, Invalid):  # it stays so until a person acts
            context.narrator.unsatisfied(pod, planned, str(stored.error))
        self._learn(stored)
        if context.has_pod(key, pods.uid_of(pod)):  # else nothing would forget it again
            uids = [_uid(each) for each in planned]
            context.backoff.granted(pods.uid_of(pod), uids, now, pods.verdict(pod))
        context.queue.add(key, now)

    def _hold_uncertain(self, claims: Sequence[Object]) -> None:
        """These writes may still arrive: what they give out is held until that is known."""
        at = self._context.clock() + _UNCERTAIN_RETRY
        for claim in claims:
            self._uncertain[_uid(claim)] = claim
            self._context.queue.add(Key.of_claim(claim), at)

    def _settled(self, key: Key, claim: Object, stored: Stored) -> None:
        context = self._context
        if not stored.uncertain:
            del self._uncertain[_uid(claim)]
            self._learn_claims(stored)
            context.cache.forget(claim)
            context.queue.add(key, context.clock())  # it may be nobody's by now
            context.wake_users(claim)
            context.queue.on_freed([claim])
        self._learn(stored)

    def _is_allocated(self, claim: Object) -> bool:
        """Whether it still is, or may be."""
        known = self._context.cache.claim(Key.of_claim(claim))
        if self.is_uncertain(claim):
            return True
        return known is not None and _uid(known) == _uid(claim) and allocation(known) is not None

    def _lifted(self, key: Key, stored: Stored) -> None:
        self._learn(stored)
        if stored.pod is not None:  # else it is gone, and its watch tells
            # kube-scheduler may have spoken of it before the answer came.
            self._context.queue.add(key, self._context.clock())

    def _learn(self, stored: Stored) -> None:
        """Raises what ended the writes early."""
        if stored.pod is not None:
            self._context.cache.apply(PODS, Change.MODIFIED, stored.pod)
        if stored.error is not None:
            raise stored.error

    def _learn_claims(self, stored: Stored) -> None:
        for claim in stored.claims:
            self._context.cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, claim)


def _uid(claim: Object) -> str:
    return str(claim["metadata"]["uid"])
