"""One step for one pod, claim or claim template."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from controller.allocator.allocate import NO_PEERS, Allocation, FitError, allocate
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.ownership import is_ours
from controller.allocator.results import granted_amounts
from controller.cache import pods
from controller.cache.claims import allocated_by_us
from controller.cache.keys import Key, Subject, uid_of
from controller.cache.pod_groups import Member
from controller.filter.node_filter import FeasibleNodes, NodeFilter
from controller.filter.usage import check_allocated, check_requested, check_scheduler
from controller.queue.queueing_hints import PodClass
from controller.queue.starvation_guard import StarvationGuard
from controller.reconcile.bind_timeout import BindTimeout
from controller.reconcile.committer import AllocationCommitter
from controller.reconcile.context import Context
from controller.reconcile.deallocator import Deallocator
from controller.reconcile.reporter import warnings_about
from controller.reconcile.templates import TemplateReconciler
from controller.write.commands import (
    CreateTemplate,
    DeleteTemplate,
    FenceClaim,
    LiftGate,
    ReadVolumes,
    ReleaseAllocation,
    WriteAllocation,
    WriteDone,
)
from controller.write.volumes import NO_VOLUMES, VolumeCache
from dra_driver.kube.events import Note
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.selector.allowance import AllowanceSpent


class Reconciler:
    """One instance, one thread. After a KubeError the key is reconciled again later.

    A step that writes dispatches a command (`controller.write.dispatcher`). Nothing is decided
    about a pod or claim with a command in flight: the answer makes its key active again.
    """

    def __init__(
        self,
        context: Context,
        node_filter: NodeFilter,
        guard: StarvationGuard,
        committer: AllocationCommitter,
    ) -> None:
        self._context = context
        self._filter = node_filter
        self._guard = guard
        self._committer = committer
        self._volumes = VolumeCache(context.clock)
        self._deallocator = Deallocator(context)
        self._bind_timeout = BindTimeout(context, self._deallocator)
        self._templates = TemplateReconciler(context)

    def reconcile(self, key: Key) -> None:
        """Read what the key names, and do the next thing that is to be done for it."""
        if key.subject is Subject.POD:
            self._reconcile_pod(key)
        elif key.subject is Subject.CLAIM:
            self._reconcile_claim(key)
        else:
            self._templates.reconcile(key)

    def on_answer(self, done: WriteDone) -> None:
        """A command has ended, and the cache has what the server answered. Raises the command's
        error."""
        context, command, answer = self._context, done.command, done.answer
        match command:
            case WriteAllocation():
                self._committer.on_written(command, answer)
            case FenceClaim() if not answer.uncertain:
                self._committer.release_assumed(command, context.clock())
            case ReleaseAllocation():
                self._deallocator.on_released(command, answer)
            case ReadVolumes() if answer.error is None:
                self._volumes.put(command.pod, answer.volumes)
            case CreateTemplate() | DeleteTemplate():
                self._templates.on_answer(command, answer)
                return
            case LiftGate() if answer.error is None and answer.pod is None:
                return  # the pod is gone, which its watch reports
        if answer.error is not None:
            raise answer.error
        # Events that came before the answer had no effect; this step handles them.
        context.queue.add(command.key, context.clock())

    def on_decision_stopped(self, key: Key, spent: AllowanceSpent, again_in: float) -> None:
        """The decision goes on in so many seconds; no event makes the pod active before."""
        context = self._context
        if (pod := context.cache.get(key)) is not None:
            context.queue.add_unschedulable(key, context.clock(), None)
            claims = context.cache.claims_of(pod) or {}
            context.reporter.stopped(pod, claims.values(), spent, again_in)

    def remove_waiting(self, key: Key) -> None:
        """The pod waits for devices no longer: no node is reserved for it."""
        self._context.queue.remove_waiting(key)
        self._volumes.forget(key)

    def _reconcile_claim(self, key: Key) -> None:
        context, claim = self._context, self._context.cache.get(key)
        self._committer.fence_uncertain(key)
        if claim is not None and not context.dispatcher.in_flight(claim):
            self._deallocator.release_orphan(key, claim)
        context.reporter.foreign_allocation(key, claim, context.cache.state().inventory)

    def _reconcile_pod(self, key: Key) -> None:
        context = self._context
        pod = context.cache.get(key)
        claims = None if pod is None or pods.is_aside(pod) else context.cache.claims_of(pod)
        if pod is None or claims is None:
            self._set_aside(key, pod)
            return
        if context.dispatcher.in_flight(pod, *claims.values()):
            return
        try:
            ours, wanted = self._requests(pod, claims)
        except (Refused, InvalidValue) as error:
            self._refuse(pod, list(claims.values()), error)
            return
        if self._is_left_to_group(pod, ours, Member.COMPLETE if wanted else Member.SERVED):
            return
        if not wanted:
            self.remove_waiting(key)
            if not all(map(allocation, claims.values())):
                context.queue.add_foreign(key, context.clock())
            self._leave_to_scheduler(pod, claims, ours)
        elif (begin_at := self._begin_at(pod, wanted)) > context.clock():
            self._stop_waiting(key)
            context.queue.add(key, begin_at)
        else:
            self._serve(pod, wanted, claims, ours)

    def _requests(
        self, pod: Object, claims: dict[str, Object]
    ) -> tuple[dict[str, Object], list[ClaimRequest]]:
        """The claims of ours by their names in the pod, and the unallocated ones as requests.
        Raises Refused or InvalidValue where no devices may be allocated for the pod."""
        settings, state = self._context.settings, self._context.cache.state()
        ours = {name: claim for name, claim in claims.items() if is_ours(claim, state)}
        # By UID: a pod may name a claim twice.
        unallocated = {uid_of(c): c for c in ours.values() if allocation(c) is None}
        wanted = [
            parse_claim(claim, state.classes, settings.ignored_fields)
            for claim in unallocated.values()
        ]
        if wanted:
            check_scheduler(pod, settings.served_schedulers)
            check_requested(pod, ours, wanted)
        return ours, wanted

    def _begin_at(self, pod: Object, wanted: Iterable[ClaimRequest]) -> float:
        """When the claims may be allocated: after the quiet time; for a pod that was not bound with
        what it had, after its pause."""
        begin_at = max(self._context.backoff.quiet_until(each.ref.uid) for each in wanted)
        if pods.node_name(pod):
            return begin_at
        unit = self._context.cache.unit_uid(pod)
        paused = self._context.bind_clock.paused_until(unit, pods.not_scheduled(pod))
        return max(begin_at, paused)

    def _is_left_to_group(self, pod: Object, claims: dict[str, Object], found: Member) -> bool:
        """Whether nothing else is done for the pod in this step, because it is a member of a group:
        the group lacks something, or the pod's gate is lifted with those of its group. `found` is
        what the step found so far."""
        context, groups = self._context, self._context.cache.groups
        if pods.node_name(pod) or groups.group_of(pod) is None:
            return False
        groups.set_found(pod, found)
        for key in groups.wake():
            context.queue.add(key, context.clock())
        group = groups.group_of(pod)
        lack = None if group is None else group.waits_for()
        if lack is not None and found is not Member.REFUSED:
            self._wait_for_group(pod, list(claims.values()), lack)
            return True
        if group is not None and group.may_be_ungated() and pods.has_our_gate(pod):
            context.dispatcher.dispatch(LiftGate(key=pods.key_of(pod), pod=pod))
            return True
        return False

    def _wait_for_group(self, pod: Object, claims: list[Object], lack: str) -> None:
        """Nothing is allocated for the pod; a change of its group makes it active again. The
        quiet time comes first, because a group's pods and claims are made one after the other. Then
        an event says what is missing, and the pod's allocations are released."""
        queue, key, now = self._context.queue, pods.key_of(pod), self._context.clock()
        self._stop_waiting(key)
        if not claims:
            return
        due = queue.add_unschedulable(key, now, None) + self._context.settings.quiet_time
        if now < due:
            queue.add(key, due)
        else:
            self._deallocator.release_unusable(pod)
            self._report(pod, claims, lack)

    def _stop_waiting(self, key: Key) -> None:
        """No node is reserved for the pod any longer."""
        self._context.queue.on_nodes_changed(self._guard.release(key))

    def _set_aside(self, key: Key, pod: Object | None) -> None:
        """Nothing is allocated for the pod; the event of a missing claim makes it active again."""
        self.remove_waiting(key)
        if pod is not None:
            self._deallocator.release_unusable(pod)

    def _leave_to_scheduler(
        self, pod: Object, claims: dict[str, Object], ours: dict[str, Object]
    ) -> None:
        """All claims of ours are allocated: kube-scheduler binds the pod. What we allocated is ours
        even if its DeviceClass is gone by now."""
        context = self._context
        if not pods.node_name(pod):
            for reason, note in warnings_about(pod, ours, context.cache):
                context.reporter.warn_pod(pod, reason, note)
        if pods.has_our_gate(pod) and context.cache.groups.group_of(pod) is None:
            context.dispatcher.dispatch(LiftGate(key=pods.key_of(pod), pod=pod))
        else:
            allocated = list(filter(allocated_by_us, claims.values()))
            self._bind_timeout.check(pod, allocated)

    def _serve(
        self,
        pod: Object,
        wanted: list[ClaimRequest],
        claims: dict[str, Object],
        ours: dict[str, Object],
    ) -> None:
        """Allocate all claims `wanted`, or let the pod wait."""
        context, key = self._context, pods.key_of(pod)
        volumes = NO_VOLUMES if pods.node_name(pod) else self._volumes.get(pod)
        if volumes is None:
            context.dispatcher.dispatch(ReadVolumes(key=key, pod=pod))
            return
        allocated = [claim for claim in claims.values() if allocation(claim) is not None]
        of_claims = filter(
            None, ((allocation(each) or {}).get("nodeSelector") for each in allocated)
        )
        selectors = [(each, "not where the pod's other claims are") for each in of_claims]
        selectors += [(each, "not where the pod's volumes are") for each in volumes.selectors]
        decision, nodes = self._decide(pod, wanted, selectors)
        if isinstance(decision, Allocation):
            try:
                check_allocated(pod, ours, wanted, decision)
                for devices in decision.assignments:
                    granted_amounts(devices)
            except Refused as error:  # devices that come later may be allowed
                pod_class = PodClass.of(pod, wanted, selectors)
                self._refuse(pod, [each.claim for each in wanted], error, pod_class)
            else:
                self.remove_waiting(key)
                binds_volumes = volumes.are_unbound
                self._committer.commit(pod, wanted, decision, binds_volumes=binds_volumes)
            return
        for until in context.backoff.nodes_in_backoff(uid_of(pod), context.clock()).values():
            context.queue.add(key, until)
        why = "another claim of the pod cannot be allocated"
        if not self._deallocator.release_all(pod, allocated, why):
            self._wait(pod, PodClass.of(pod, wanted, selectors), nodes, decision)

    def _decide(
        self, pod: Object, wanted: list[ClaimRequest], selectors: Sequence[tuple[Object, str]]
    ) -> tuple[Allocation | FitError, FeasibleNodes]:
        """Nodes on which the pod failed are tried after all others, and not before their backoff
        has ended."""
        context = self._context
        failed: Collection[str] = context.backoff.failed_nodes(uid_of(pod))
        in_backoff = context.backoff.nodes_in_backoff(uid_of(pod), context.clock())
        reserved = self._guard.reserved_against(pod)
        for avoided in (failed, in_backoff) if len(in_backoff) < len(failed) else (failed,):
            excluded = dict.fromkeys(avoided, "refused by the scheduler lately")
            if reserved is not None:
                excluded[reserved.node] = f"reserved for {reserved.key}"
            nodes = self._filter.feasible_nodes(pod, selectors, excluded)
            decision = self._allocate(pod, wanted, nodes)
            if isinstance(decision, Allocation):
                break
        return decision, nodes

    def _allocate(
        self, pod: Object, wanted: list[ClaimRequest], nodes: FeasibleNodes
    ) -> Allocation | FitError:
        cache, policy = self._context.cache, self._context.policy
        peers = cache.cards_of_replicas(pod) if policy.keeps_apart(wanted) else NO_PEERS
        roomy = cache.nodes_with_capacity(pod)
        for some in [nodes.nominated, nodes.feasible] if nodes.nominated else [nodes.feasible]:
            decision = allocate(
                cache.state(), wanted, some, policy=policy, peers=peers, with_capacity=roomy
            )
            if isinstance(decision, Allocation):
                break
        return decision

    def _wait(
        self, pod: Object, pod_class: PodClass, nodes: FeasibleNodes, fit_error: FitError
    ) -> None:
        queue, now, key = self._context.queue, self._context.clock(), pods.key_of(pod)
        since = queue.add_unschedulable(key, now, pod_class)
        claims = [each.claim for each in pod_class.wanted]
        self._report(pod, claims, partial(nodes.explain, fit_error.explain))
        queue.on_nodes_changed(self._guard.reserve(pod, since, now, pod_class, nodes.feasible))
        queue.add(key, self._guard.next_check(since, now))

    def _refuse(
        self,
        pod: Object,
        claims: Sequence[Object],
        error: Exception,
        pod_class: PodClass | None = None,
    ) -> None:
        if pod_class is None and self._is_left_to_group(pod, {}, Member.REFUSED):
            return
        self._context.queue.add_refused(pods.key_of(pod), self._context.clock(), pod_class)
        self._report(pod, claims, str(error))

    def _report(self, pod: Object, claims: Iterable[Object], reason: Note) -> None:
        again_in = self._context.reporter.unsatisfied(pod, claims, reason)
        if again_in:
            self._context.queue.add(pods.key_of(pod), self._context.clock() + again_in)
