"""From a decision to allocated claims: the writes of one pod, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from controller.allocator.allocate import Allocation
from controller.allocator.request import Wanted
from controller.cluster import pods
from controller.deciding.context import Context
from controller.deciding.live_pods import LivePods
from controller.deciding.writer import Stored
from controller.work.agenda import Key
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
        self._uncertain: dict[Key, Object] = {}

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
        again = any(context.memory.was_released(each.ref.uid) for each in wanted)
        only_for = pod if again else None
        context.writes.begin(
            key,
            [pods.uid_of(pod), *(each.ref.uid for each in wanted)],
            partial(context.writer.allocate, planned, gated, only_for=only_for),
            partial(self._written, key, pod, planned),
        )

    def lift_gate(self, key: Key, pod: Object) -> None:
        """Nothing of ours keeps the pod from being scheduled."""
        self._context.writes.begin(
            key,
            [pods.uid_of(pod)],
            partial(self._context.writer.lift_gate, pod),
            partial(self._lifted, key),
        )

    def is_uncertain(self, key: Key) -> bool:
        """Whether an earlier write to the claim may still arrive at the server."""
        return key in self._uncertain

    def settle(self, key: Key) -> None:
        """Find out what became of it."""
        claim = self._uncertain[key]
        if self._context.writes.is_busy([_uid(claim)]):
            return
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
        for claim in stored.uncertain:
            self._uncertain[Key.of_claim(claim)] = claim
            context.agenda.add(Key.of_claim(claim), now + _UNCERTAIN_RETRY)
        for claim in planned:
            if Key.of_claim(claim) not in self._uncertain:
                context.cache.forget(claim)
                # Its pod may have gone meanwhile, and then nobody else brings the claim up.
                context.agenda.add(Key.of_claim(claim), now)
            context.wake_users(claim, but=key, after=pause)
        if stored.late or stored.error is not None:
            context.wake_queue(after=pause)  # what was found for the pod is free again
        if stored.late:
            self._live_pods.learn(pod, stored.pod)
            context.agenda.add(key, now)
            return
        context.narrator.allocated(sum(allocation(each) is not None for each in stored.claims))
        if isinstance(stored.error, Invalid):  # it stays so until a person acts
            context.narrator.unsatisfied(pod, planned, str(stored.error))
        self._learn(stored)
        if context.has_pod(key, pods.uid_of(pod)):  # else nothing would forget it again
            uids = [_uid(each) for each in planned]
            context.memory.granted(pods.uid_of(pod), uids, now, pods.verdict(pod))
        context.agenda.add(key, now)

    def _settled(self, key: Key, claim: Object, stored: Stored) -> None:
        context = self._context
        if not stored.uncertain:
            del self._uncertain[key]
            self._learn_claims(stored)
            context.cache.forget(claim)
            context.agenda.add(key, context.clock())  # it may be nobody's by now
            context.wake_users(claim)
            context.wake_queue()
        self._learn(stored)

    def _lifted(self, key: Key, stored: Stored) -> None:
        self._learn(stored)
        if stored.pod is not None:  # else it is gone, and its watch tells
            # kube-scheduler may have spoken of it before the answer came.
            self._context.agenda.add(key, self._context.clock())

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
