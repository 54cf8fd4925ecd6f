"""Pods that wait for devices: their place in the queue, the words about them, and the node that may
be reserved for the first."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cache import pods
from controller.cache.claims import is_to_be_made
from controller.cache.keys import Key
from controller.placer.outcome import Unplaced
from controller.placer.pod_claims import PodClaims
from controller.placer.trials import TrialPlacer
from controller.queue.queueing_hints import PodClass
from controller.queue.starvation_guard import StarvationGuard
from controller.reconcile.context import Context
from dra_driver.kube.events import Note
from dra_driver.model.claims.claim import Object
from dra_driver.selector.allowance import AllowanceSpent


class WaitingLine:
    """One instance, one thread."""

    def __init__(self, context: Context, guard: StarvationGuard, trials: TrialPlacer) -> None:
        self.guard = guard
        self._context = context
        self._trials = trials

    def reserved_against(self, pod: Object) -> dict[str, str]:
        """The nodes that are reserved for a pod before this one, with the reason for people."""
        reserved = self.guard.reserved_against(pod)
        if reserved is None:
            return {}
        return dict.fromkeys(reserved.nodes, f"reserved for {reserved.key}")

    def keep(self, asked: PodClaims, unplaced: Unplaced) -> None:
        """No node has devices for the pod: it waits until some are free. If devices are there that
        it may not have, others that come later may be allowed."""
        context, pod, key = self._context, asked.pod, pods.key_of(asked.pod)
        queue, now, pod_class = context.queue, context.clock(), PodClass.of(asked)
        claims = [request.claim for request in asked.wanted]
        if unplaced.depends_on_devices:
            self.refuse(pod, claims, unplaced.explain(), pod_class)
            return
        since = queue.add_unschedulable(key, now, pod_class)
        self.report(pod, claims, unplaced.explain)
        feasible = unplaced.nodes.feasible
        queue.on_nodes_changed(self.guard.reserve(pod, since, now, pod_class, feasible))
        queue.add(key, self.guard.next_check(since, now))
        if (trial := self._trials.next_trial(pod)) is not None:
            queue.add(key, trial)

    def refuse(
        self,
        pod: Object,
        claims: Iterable[Object],
        reason: str,
        pod_class: PodClass | None = None,
    ) -> None:
        """The pod may not have what it asks for. It has a class if only the devices that were
        chosen are refused."""
        self._context.queue.add_refused(pods.key_of(pod), self._context.clock(), pod_class)
        self.report(pod, claims, reason)

    def stop(self, key: Key, spent: AllowanceSpent, again_in: float) -> None:
        """The decision goes on in so many seconds; no event makes the pod active before. Its gate
        stays: the claim would cost kube-scheduler as much."""
        context = self._context
        if (pod := context.cache.get(key)) is not None:
            context.queue.add_unschedulable(key, context.clock(), None)
            claims = context.cache.claims_of(pod) or {}
            context.reporter.stopped(pod, claims.values(), spent, again_in)

    def report(self, pod: Object, claims: Iterable[Object], reason: Note) -> None:
        """An event says why the pod waits, now or as soon as one may be sent."""
        stored = [each for each in claims if not is_to_be_made(each)]
        again_in = self._context.reporter.unsatisfied(pod, stored, reason)
        if again_in:
            self._context.queue.add(pods.key_of(pod), self._context.clock() + again_in)

    def release_node(self, key: Key) -> None:
        """No node is reserved for the pod any longer."""
        self._context.queue.on_nodes_changed(self.guard.release(key))
