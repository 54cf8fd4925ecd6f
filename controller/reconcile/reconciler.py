"""Brings one pod, or one claim, a step nearer to where it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from controller.allocator.allocate import NO_PEERS, Allocation, FitError, allocate
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.device import CardKey
from controller.allocator.node_set import NodeSet
from controller.allocator.ownership import is_ours
from controller.allocator.results import granted_amounts
from controller.cache import pods
from controller.cache.claims import class_names
from controller.cache.keys import Key, Subject, uid_of
from controller.filter.feasible_nodes import FeasibleNodes, NodeFilter, feasible_nodes
from controller.filter.usage import check_allocated, check_asked
from controller.queue.pod_class import PodClass, class_of
from controller.queue.starvation_guard import StarvationGuard
from controller.reconcile.committer import AllocationCommitter
from controller.reconcile.context import Context
from controller.reconcile.deallocator import Deallocator
from controller.reconcile.reporter import warnings_about
from controller.reconcile.templates import TemplateKeeper
from controller.write.commands import (
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    ReadVolumes,
    ReleaseAllocation,
    SettleUncertain,
    WriteAllocation,
    WriteDone,
)
from controller.write.volumes import VolumeCache
from dra_driver.kube.events import Note
from dra_driver.model.claim import Object, allocation
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.selector.allowance import AllowanceSpent


class Reconciler:
    """One instance, one thread. Every method may raise KubeError: look again later.

    What is to be written is dispatched (`controller.write.dispatcher`). A pod or claim with a write
    in flight is left alone until its answer has come, which brings it up again.
    """

    def __init__(
        self,
        context: Context,
        fits: NodeFilter,
        guard: StarvationGuard,
        *,
        template_retention: float,
    ) -> None:
        self._guard = guard
        self._fits = fits
        self._volumes = VolumeCache(context.clock)
        self._context = context
        self._committer = AllocationCommitter(context)
        self._deallocator = Deallocator(context)
        self._templates = TemplateKeeper(context, retention=template_retention)

    def reconcile(self, key: Key) -> None:
        """Look at what the key names, and do what is to be done."""
        if key.subject is Subject.CLAIM:
            self._reconcile_claim(key)
        elif key.subject is Subject.TEMPLATE:
            self._templates.reconcile(key)
        else:
            self._reconcile_pod(key)

    def on_answer(self, done: WriteDone) -> None:
        """The objects that the server answered were taken in before. Raises what ended the
        command."""
        context, command, answer = self._context, done.command, done.answer
        if isinstance(command, CreateTemplate | DeleteTemplate):
            self._templates.on_answer(command, answer)
            return
        match command:
            case WriteAllocation():
                self._committer.on_allocation(command, answer)
            case SettleUncertain():
                self._committer.on_settled(command, answer)
            case ReleaseAllocation():
                self._deallocator.on_release(command, answer)
            case ReadVolumes() if answer.error is None:
                self._volumes.learn(command.key, command.pod, answer.found)
        if answer.error is not None:
            raise answer.error
        if isinstance(command, LiftGate) and answer.pod is None:
            return  # the pod is gone, and its watch tells
        # What came meanwhile was not acted on; and if it is gone, this forgets what was read.
        context.queue.add(command.key, context.clock())

    def _reconcile_claim(self, key: Key) -> None:
        claim = self._context.cache.get(key)
        self._committer.settle(key)
        if claim is not None and not self._is_being_written(claim):
            self._deallocator.release_orphan(key, claim)
        self._context.reporter.foreign_allocation(key, claim)

    def _is_being_written(self, claim: Object) -> bool:
        """Whether it is being written, or may have been."""
        in_flight = self._context.dispatcher.in_flight([uid_of(claim)])
        return in_flight or self._committer.is_uncertain(claim)

    def _reconcile_pod(self, key: Key) -> None:
        context = self._context
        pod = context.cache.get(key)
        if pod is None or pods.is_aside(pod):
            self.leave_line(key)
            return
        claims = context.cache.claims_of(pod)
        if claims is None:
            self.leave_line(key)  # nothing can be kept for it, perhaps for ever
            return  # the claim that is missing brings the pod up again
        if context.dispatcher.in_flight([uid_of(pod), *map(uid_of, claims.values())]):
            return
        state = context.cache.state()
        try:
            ours = {name: claim for name, claim in claims.items() if is_ours(claim, state)}
            # A pod may name a claim twice.
            unallocated = {uid_of(c): c for c in ours.values() if allocation(c) is None}
            todo = list(unallocated.values())
            wanted = [parse_claim(claim, state.classes) for claim in todo]
            if todo:
                check_asked(pod, ours, wanted)
        except (Refused, InvalidValue) as error:
            self._refuse(key, pod, list(claims.values()), error)
            return
        if not todo:
            self.leave_line(key)
            self._leave_to_scheduler(key, pod, ours)
        elif self._is_undisturbed(key, todo):
            self._serve(key, pod, wanted, claims, ours)

    def _leave_to_scheduler(self, key: Key, pod: Object, ours: dict[str, Object]) -> None:
        context = self._context
        if not pods.node_name(pod):
            for reason, note in warnings_about(pod, ours, context.cache):
                context.reporter.warn_pod(pod, reason, note)
        if pods.has_our_gate(pod):
            context.dispatcher.dispatch(LiftGate(key, pod))
        else:
            self._deallocator.check_bind_timeout(key, pod, list(ours.values()))

    def _is_undisturbed(self, key: Key, todo: list[Object]) -> bool:
        context, now = self._context, self._context.clock()
        if any(self._committer.is_uncertain(claim) for claim in todo):
            return False  # settling it brings the pod up again
        until = max(context.backoff.quiet_until(uid_of(claim)) for claim in todo)
        if until > now:
            context.queue.add(key, until)
        return until <= now

    def _serve(
        self,
        key: Key,
        pod: Object,
        wanted: list[ClaimRequest],
        claims: dict[str, Object],
        ours: dict[str, Object],
    ) -> None:
        context = self._context
        volumes = () if pods.node_name(pod) else self._volumes.selectors(key, pod)
        if volumes is None:
            context.dispatcher.dispatch(ReadVolumes(key, pod))
            return
        allocated = [claim for claim in claims.values() if allocation(claim) is not None]
        avoided = context.backoff.avoided(uid_of(pod), context.clock())
        failed = context.backoff.failed_nodes(uid_of(pod))
        # A node that failed is not tried again before every other one was.
        where = self._candidates(pod, allocated, failed, volumes)
        decide = partial(
            allocate,
            context.cache.state(),
            wanted,
            policy=context.policy,
            peers=self._peers(pod, wanted),
            roomy=context.cache.nodes_with_capacity(pod),
        )
        outcome = _decide(decide, where)
        if isinstance(outcome, FitError) and len(avoided) < len(failed):
            where = self._candidates(pod, allocated, avoided, volumes)
            outcome = _decide(decide, where)
        pod_class = class_of(pod, wanted, allocated, volumes)
        if isinstance(outcome, Allocation):
            self._grant(key, pod, pod_class, outcome, ours)
            return
        for until in avoided.values():
            context.queue.add(key, until)
        why = "another claim of the pod cannot be allocated"
        if not self._deallocator.release_all(key, pod, allocated, why):
            todo = [each.claim for each in wanted]
            since = context.queue.wait(key, context.clock(), pod_class, class_names(todo))
            self._report(key, pod, todo, partial(where.explain, outcome.explain))
            self._stay_in_line(key, pod, since, pod_class, where.fitting)

    def _peers(self, pod: Object, wanted: list[ClaimRequest]) -> Mapping[CardKey, int]:
        """What matters of the pod's replicas to the decision."""
        spreads = self._context.policy.for_claims(wanted).spreads(wanted)
        return self._context.cache.cards_of_replicas(pod) if spreads else NO_PEERS

    def _candidates(
        self,
        pod: Object,
        allocated: list[Object],
        avoided: Iterable[str],
        volumes: Sequence[Object],
    ) -> FeasibleNodes:
        excluded = dict.fromkeys(avoided, "refused by the scheduler lately")
        reserved = self._guard.reserved_against(pod)
        if reserved is not None:
            excluded[reserved.node] = f"kept for {reserved.key}"
        return feasible_nodes(pod, self._fits, allocated, excluded=excluded, volumes=volumes)

    def _stay_in_line(
        self, key: Key, pod: Object, since: float, pod_class: PodClass, nodes: NodeSet
    ) -> None:
        context, now = self._context, self._context.clock()
        opened = self._guard.waits(pod, since, now, pod_class, nodes)
        context.queue.on_nodes(opened)
        context.queue.add(key, self._guard.next_look(since, now))

    def stopped(self, key: Key, spent: AllowanceSpent, again_in: float) -> None:
        """The pod waits on, but no freed device brings it up before the decision goes on."""
        context = self._context
        if (pod := context.cache.get(key)) is not None:
            context.queue.wait(key, context.clock(), None)
            claims = context.cache.claims_of(pod) or {}
            context.reporter.stopped(pod, claims.values(), spent, again_in)

    def leave_line(self, key: Key) -> None:
        """The pod waits for no devices any more, whatever is free; a node kept for it is not."""
        self._context.queue.leave(key)
        self._volumes.forget(key)

    def _grant(
        self,
        key: Key,
        pod: Object,
        pod_class: PodClass,
        granted: Allocation,
        ours: dict[str, Object],
    ) -> None:
        wanted = pod_class.wanted
        try:
            check_allocated(pod, ours, wanted, granted)
            for grants in granted.grants:
                granted_amounts(grants)
        except Refused as error:
            # Something else may be found for it.
            self._refuse(key, pod, [each.claim for each in wanted], error, pod_class)
            return
        self.leave_line(key)
        self._committer.commit(key, pod, wanted, granted, self._context.cache.state().classes)

    def _refuse(
        self,
        key: Key,
        pod: Object,
        claims: Sequence[Object],
        error: Exception,
        pod_class: PodClass | None = None,
    ) -> None:
        queue, now = self._context.queue, self._context.clock()
        queue.refuse(key, now, pod_class, class_names(claims))
        self._report(key, pod, claims, str(error))

    def _report(self, key: Key, pod: Object, claims: Iterable[Object], reason: Note) -> None:
        context = self._context
        untold_for = context.reporter.unsatisfied(pod, claims, reason)
        if untold_for:
            context.queue.add(key, context.clock() + untold_for)


def _decide(
    decide: Callable[[NodeSet], Allocation | FitError], where: FeasibleNodes
) -> Allocation | FitError:
    if where.preferred:
        outcome = decide(where.preferred)
        if isinstance(outcome, Allocation):
            return outcome
    return decide(where.fitting)
