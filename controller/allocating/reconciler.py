"""One step for one pod, claim or claim template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.allocating.bind_timeout import BindTimeout
from controller.allocating.clock_updater import ClockUpdater
from controller.allocating.clocks import Clocks
from controller.allocating.commands import FenceClaim, ReleaseAllocation, WriteAllocation
from controller.allocating.committer import AllocationCommitter
from controller.allocating.deallocator import Deallocator
from controller.allocating.node_order import Later, NodeOrder
from controller.allocating.quiet_time import QuietTime
from controller.cache import pods
from controller.cache.cache import Changed
from controller.cache.claims import allocated_by_us
from controller.cache.keys import Key, Subject, uid_of
from controller.cache.pod_groups import Member
from controller.placer.candidates import Candidates
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.reconcile.context import Context
from controller.reconcile.reporter import warnings_about
from controller.reconcile.templates import TemplateReconciler
from controller.reconcile.waiting_line import WaitingLine
from controller.write.commands import (
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    ReadVolumes,
    WriteDone,
)
from controller.write.volumes import NO_VOLUMES, VolumeCache
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.errors import InvalidValue, Refused


class Reconciler:
    """One instance, one thread. After a KubeError the key is reconciled again later.

    A step that writes dispatches a command (`controller.write.dispatcher`). Nothing is decided
    about a pod or claim with a command in flight: the answer makes its key active again.
    """

    def __init__(
        self,
        context: Context,
        clocks: Clocks,
        placer: Placer,
        line: WaitingLine,
        committer: AllocationCommitter,
    ) -> None:
        self._context = context
        self._clocks = clocks
        self._clock_updater = ClockUpdater(
            context.cache, clocks, quiet_time=context.settings.quiet_time
        )
        self._placer = placer
        self._line = line
        self._committer = committer
        self._volumes = VolumeCache(context.clock)
        self._deallocator = Deallocator(context, clocks.bind)
        self._bind_timeout = BindTimeout(context, clocks, self._deallocator)
        self._templates = TemplateReconciler(context)
        self._quiet_time = QuietTime(context.cache, clocks)
        self._node_order = NodeOrder(context.cache, clocks)

    def reconcile(self, key: Key) -> None:
        """Read what the key names, and do the next thing that is to be done for it."""
        if key.subject is Subject.POD:
            self._reconcile_pod(key)
        elif key.subject is Subject.CLAIM:
            self._reconcile_claim(key)
        else:
            self._templates.reconcile(key)

    def on_change(self, changed: Changed, now: float) -> None:
        """The cache has the change of one object."""
        self._clock_updater.on_change(changed, now)

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

    def remove_waiting(self, key: Key) -> None:
        """The pod waits for devices no longer: no node is reserved for it."""
        self._context.queue.remove_waiting(key)
        self._volumes.forget(key)

    def clear(self) -> None:
        """Another replica leads."""

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
            asked = self._placer.read(pod, claims)
        except (Refused, InvalidValue) as error:
            self._refuse(pod, claims.values(), str(error))
            return
        found = Member.COMPLETE if asked.wanted else Member.SERVED
        if self._is_left_to_group(pod, asked.ours, found):
            return
        if not asked.wanted:
            self.remove_waiting(key)
            if not all(map(allocation, claims.values())):
                context.queue.add_foreign(key, context.clock())
            self._leave_to_scheduler(pod, claims, asked.ours)
        elif (paused_until := self._paused_until(pod)) > context.clock():
            self._wait_until(key, paused_until)
        else:
            self._serve(asked)

    def _paused_until(self, pod: Object) -> float:
        """When claims of a pod that was not bound with what it had may be allocated."""
        if pods.node_name(pod):
            return 0.0
        unit = self._context.cache.unit_uid(pod)
        return self._clocks.bind.paused_until(unit, pods.not_scheduled(pod))

    def _wait_until(self, key: Key, at: float) -> None:
        """Nothing is allocated for the pod before."""
        self._line.release_node(key)
        self._context.queue.add(key, at)

    def _is_left_to_group(self, pod: Object, claims: Mapping[str, Object], found: Member) -> bool:
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
        self._line.release_node(key)
        if not claims:
            return
        due = queue.add_unschedulable(key, now, None) + self._context.settings.quiet_time
        if now < due:
            queue.add(key, due)
        else:
            self._deallocator.release_unusable(pod)
            self._line.report(pod, claims, lack)

    def _set_aside(self, key: Key, pod: Object | None) -> None:
        """Nothing is allocated for the pod; the event of a missing claim makes it active again."""
        self.remove_waiting(key)
        if pod is not None:
            self._deallocator.release_unusable(pod)

    def _leave_to_scheduler(
        self, pod: Object, claims: Mapping[str, Object], ours: Mapping[str, Object]
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

    def _serve(self, asked: PodClaims) -> None:
        """Allocate all claims that are wanted, or let the pod wait."""
        context, pod, key = self._context, asked.pod, pods.key_of(asked.pod)
        quiet = self._quiet_time.of(asked, context.clock())
        if quiet.only == "":
            self._wait_until(key, quiet.until)
            return
        volumes = NO_VOLUMES if pods.node_name(pod) else self._volumes.get(pod)
        if volumes is None:
            context.dispatcher.dispatch(ReadVolumes(key=key, pod=pod))
            return
        asked = replace(asked, volumes=[*volumes.selectors, *quiet.selectors])
        later = self._node_order.later(pod, context.clock())
        outcome = self._place(asked, later)
        if not quiet.allows(outcome, later):
            self._wait_until(key, quiet.until)
        elif isinstance(outcome, Placed):
            self.remove_waiting(key)
            self._committer.commit(pod, outcome, binds_volumes=volumes.are_unbound)
        elif outcome.depends_on_devices or not self._gives_back(asked):
            self._line.keep(asked, outcome)

    def _place(self, asked: PodClaims, later: Later) -> Placed | Unplaced:
        """Nodes on which the pod failed are tried after all others, and not before their backoff
        has ended."""
        in_backoff = self._clocks.backoff.nodes_in_backoff(uid_of(asked.pod), self._context.clock())
        excluded = dict.fromkeys(in_backoff, "refused by the scheduler lately")
        excluded |= self._line.reserved_against(asked.pod)
        return self._placer.place(asked, Candidates(excluded, last=later.sets))

    def _gives_back(self, asked: PodClaims) -> bool:
        """Whether the pod, for which there is no room, has an allocated claim that is released. It
        has another step after the backoff of each node."""
        context, pod = self._context, asked.pod
        in_backoff = self._clocks.backoff.nodes_in_backoff(uid_of(pod), context.clock())
        for until in in_backoff.values():
            context.queue.add(pods.key_of(pod), until)
        why = "another claim of the pod cannot be allocated"
        return self._deallocator.release_all(pod, asked.allocated, why)

    def _refuse(self, pod: Object, claims: Iterable[Object], reason: str) -> None:
        if not self._is_left_to_group(pod, {}, Member.REFUSED):
            self._line.refuse(pod, claims, reason)
