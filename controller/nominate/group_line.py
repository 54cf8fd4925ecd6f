"""Groups of pods that wait. The member that came first stands for its group in the queue."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.nodes.node_set import NodeSet
from controller.cache import pods
from controller.cache.keys import Key
from controller.cache.pod_groups import Name, PodGroup
from controller.groups.request import GroupRequest
from controller.groups.reservation import GroupReserver
from controller.nominate.metrics import GroupReason, NominationMetrics
from controller.placer.pod_claims import PodClaims
from controller.queue.queueing_hints import PodClass
from controller.reconcile.context import Context
from controller.reconcile.waiting_line import WaitingLine
from dra_driver.model.claims.claim import Object


class GroupLine:
    """One instance, one thread."""

    def __init__(
        self,
        context: Context,
        line: WaitingLine,
        reserver: GroupReserver,
        metrics: NominationMetrics,
    ) -> None:
        self._context = context
        self._line = line
        self._reserver = reserver
        self._metrics = metrics
        self._members: dict[Name, frozenset[Key]] = {}  # with which the group waits
        self._reasons: dict[Name, GroupReason] = {}
        self._incomplete_since: dict[Name, float] = {}
        self._complete_at: dict[Name, float] = {}  # groups that are not bound
        metrics.observe_groups(lambda reason: list(self._reasons.values()).count(reason))

    def has(self, name: Name, key: Key) -> bool:
        """Whether the group waits, and the pod with it."""
        return key in self._members.get(name, ())

    def begin_decision(self, name: Name) -> None:
        """The group is complete."""
        self._incomplete_since.pop(name, None)
        self._complete_at.setdefault(name, self._context.clock())

    def wait_for_pods(self, group: PodGroup, waiting: Sequence[Object], lack: str) -> None:
        """The group is not complete. Nothing is said at first: its pods are made one after the
        other."""
        now = self._context.clock()
        since = self._incomplete_since.setdefault(group.name, now)
        quiet = since + self._context.settings.quiet_time
        if now < quiet:
            self._reasons[group.name] = GroupReason.INCOMPLETE
            self._context.queue.add(pods.key_of(waiting[0]), quiet)
        else:
            self.wait(group, waiting, GroupReason.INCOMPLETE, lack)

    def refuse(
        self, group: PodGroup, waiting: Sequence[Object], pod: Object, error: Exception
    ) -> None:
        """The pod may not have what it asks for: its gate would be lifted with the others', and
        kube-scheduler would give it cards that no prepare hands over."""
        claims = self._context.cache.claims_of(pod) or {}
        self._line.refuse(pod, claims.values(), str(error))
        reason = f"pod {pod['metadata']['name']} may not have what it asks for: {error}"
        self.wait(group, waiting, GroupReason.REFUSED, reason)

    def wait(
        self,
        group: PodGroup,
        waiting: Sequence[Object],
        why: GroupReason,
        note: str = "",
        lacking: PodClaims | None = None,
    ) -> float:
        """What helps the member that is `lacking` devices may help the group. `note` is for people.
        Returns since when the group waits."""
        queue, now = self._context.queue, self._context.clock()
        first, *others = map(pods.key_of, waiting)
        kind = None if lacking is None else PodClass.of(lacking)
        since = queue.add_unschedulable(first, now, kind)
        for key in others:
            queue.add_unschedulable(key, now, None)
        self._members[group.name] = frozenset(map(pods.key_of, waiting))
        self._reasons[group.name] = why
        if why is not GroupReason.DEVICES:
            self._line.release_node(first)  # it could not use any that comes free there
        again_in = self._context.settings.fairness_patience
        if note:
            self._line.report(waiting[0], (), note)
            again_in = self._context.reporter.group_waits(group.obj, note) or again_in
        queue.add(first, now + again_in)
        return since

    def reserve(self, first: Object, since: float, request: GroupRequest) -> None:
        """If the group has waited longest: pods behind it get nothing on some nodes."""
        queue, guard, now = self._context.queue, self._line.guard, self._context.clock()
        freed = guard.reserve_set(first, since, now, lambda: self._reserver.nodes_for(request))
        queue.on_nodes_changed(freed)
        queue.add(pods.key_of(first), guard.next_check(since, now))

    def reserved_against(self, first: Object) -> NodeSet:
        """The nodes that are reserved for a pod or group before this one."""
        reserved = self._line.reserved_against(first)
        return self._context.cache.state().numbers.set_of(reserved.keys())

    def leave(self, name: Name, waiting: Sequence[Object]) -> None:
        """The group waits for nothing of this controller."""
        self.forget_members(name)
        self._reasons.pop(name, None)
        for pod in waiting:
            self._context.queue.remove_waiting(pods.key_of(pod))

    def forget_members(self, name: Name) -> None:
        """The next step of any member is one for the group."""
        self._members.pop(name, None)

    def end(self, name: Name, *, is_bound: bool) -> None:
        """No member waits; the last one was bound, or is gone."""
        at = self._complete_at.pop(name, None)
        if at is not None and is_bound:
            self._metrics.group_seconds.observe(self._context.clock() - at)
        self._incomplete_since.pop(name, None)
        self._reasons.pop(name, None)

    def clear(self) -> None:
        """Another replica leads."""
        for known in (
            self._members,
            self._reasons,
            self._incomplete_since,
            self._complete_at,
        ):
            known.clear()
