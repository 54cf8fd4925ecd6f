"""One step for the waiting members of a PodGroup, while kube-scheduler allocates.

kube-scheduler (1.37.2, `schedule_one_podgroup.go`) tries a group as one, once none of its waiting
members has a gate. It tries them in the order of its queue, each with the others' names counted,
and binds a gang whole or not at all. After an attempt that failed, members that had found a place
lose their names, and the others keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from controller.cache import pods
from controller.cache.keys import Key
from controller.cache.pod_groups import Member, Name, PodGroup
from controller.filter.node_filter import NodeFilter
from controller.groups.request import GroupPlaced, GroupRequest, GroupUnplaced
from controller.groups.search import GroupSearch
from controller.nominate.costly import is_costly
from controller.nominate.group_line import GroupLine
from controller.nominate.group_naming import GroupNaming, naming
from controller.nominate.group_reader import GroupReader, MemberRefused
from controller.nominate.lifted_pods import LiftedPods
from controller.nominate.metrics import GroupReason
from controller.nominate.named_pods import NamedPods
from controller.nominate.nominations import is_judged
from controller.placer.placer import Placer
from controller.reconcile.context import Context
from controller.write.commands import Answer, ClearNomination, LiftGate, NameNode
from dra_driver.model.claims.claim import Object

_UNSCHEDULABLE: Final = "unschedulable"
_AGAIN_WITHIN: Final = 30.0
"""Seconds that kube-scheduler has to follow names that were written again: it says nothing of the
attempts in between, if it would say the same."""


@dataclass(slots=True)
class _BegunSearch:
    """A search that may go on in the next step, for the group as it was. So many pods were
    `unschedulable` when it began."""

    group: PodGroup
    search: GroupSearch
    unschedulable: int
    request: GroupRequest


@dataclass(slots=True)
class GroupNominator:
    """Names the nodes of all waiting members of a group, then lifts their gates. The first of them
    stands for the group in the queue. One instance, one thread."""

    context: Context
    placer: Placer
    nodes: NodeFilter
    _: KW_ONLY
    line: GroupLine
    reader: GroupReader
    named: NamedPods
    lifted: LiftedPods
    _group_of: dict[Key, Name] = field(default_factory=dict)
    _searches: dict[Name, _BegunSearch] = field(default_factory=dict)
    _namings: dict[Name, GroupNaming] = field(default_factory=dict)
    # Groups whose names were written again.
    _again_until: dict[Name, float] = field(default_factory=dict)

    def reconcile(self, pod: Object, group: PodGroup) -> None:
        """Do what is to be done for the group of the pod, which waits."""
        key = pods.key_of(pod)
        self._group_of[key] = group.name
        if group.waits_for():
            self._abandon(group.name)
        elif (begun := self._namings.get(group.name)) is not None:
            begun.failed.discard(key)
            self._go_on(begun)
            return
        first = self.context.cache.groups.first_waiting(group.name)
        if key == first:
            self._reconcile_whole(group)
        elif first is not None and not self.line.has(group.name, key):
            self.context.queue.add(first, self.context.clock())

    def _reconcile_whole(self, group: PodGroup) -> None:
        """The step of the first member."""
        waiting = self._waiting(group)
        self._group_of |= dict.fromkeys(map(pods.key_of, waiting), group.name)
        self._end_judged(group, waiting)
        self.line.forget_members(group.name)  # until it is known again for what all of them wait
        is_gated = any(map(pods.has_our_gate, waiting))
        if any(map(self.context.dispatcher.in_flight, waiting)):
            return  # each answer is a step for the first member
        if lack := group.waits_for():
            self._take_back(waiting)
            self.line.wait_for_pods(group, waiting, lack)
        elif is_gated or (self._is_refused(waiting) and not group.is_preempting):
            self._decide(group, waiting)

    def on_named(self, command: NameNode, answer: Answer) -> None:
        """The server has answered the command."""
        begun = self._namings.get(self._group_of.get(command.key, ""))
        if begun is None:
            return
        if answer.error is not None:
            begun.failed.add(command.key)
            return
        if answer.pod is None:
            self.forget(command.key)
            return
        begun.to_name.pop(command.key, None)
        if answer.hint_refused is not None:
            self.named.end(command.key)
        if answer.hint_refused is not None or not command.node:
            self.named.forget(command.key)

    def on_lifted(self, command: LiftGate, answer: Answer) -> bool:
        """Whether the command was for a group."""
        begun = self._namings.get(self._group_of.get(command.key, ""))
        if begun is None:
            return False
        if answer.error is None and answer.pod is None:
            self.forget(command.key)
        elif answer.error is None:
            begun.forget(command.key)
        else:
            begun.failed.add(command.key)
        return True

    def forget(self, key: Key, *, is_bound: bool = False) -> None:
        """The pod waits no longer, or its claims were not allocated as expected. If it was to be
        named with others, all of them are decided anew."""
        name = self._group_of.pop(key, None)
        if name is None:
            return
        self._drop_search(name)
        begun = self._namings.get(name)
        if begun is not None and is_bound:
            begun.forget(key)
        elif begun is not None and begun.has(key):
            self._break_off(begun)
        self.line.forget_members(name)
        first = self.context.cache.groups.first_waiting(name)
        if first is None:
            self.line.end(name, is_bound=is_bound)
            self._again_until.pop(name, None)
            return
        self._group_of[first] = name  # it may be gone before its first step
        if not is_bound:  # kube-scheduler says of each of the others what becomes of it
            self.context.queue.add(first, self.context.clock())

    def _abandon(self, name: Name) -> None:
        """kube-scheduler would not try the group as it is now: a search holds devices for nothing,
        and a gate that is lifted cannot be set again."""
        self._drop_search(name)
        if (begun := self._namings.get(name)) is not None:
            self._break_off(begun)

    def _break_off(self, begun: GroupNaming) -> None:
        del self._namings[begun.group]
        for member in begun.nodes:
            self.named.end(member)

    def is_naming(self, key: Key) -> bool:
        """Whether the pod is being named with the others of its group."""
        begun = self._namings.get(self._group_of.get(key, ""))
        return begun is not None and begun.has(key)

    def clear(self) -> None:
        """Another replica leads."""
        for name in tuple(self._searches):
            self._drop_search(name)
        self.line.clear()
        for known in (self._group_of, self._namings, self._again_until):
            known.clear()

    def _waiting(self, group: PodGroup) -> list[Object]:
        """The first one stands for the group. A member that others hold does not wait for us."""
        members = map(self.context.cache.get, self.context.cache.groups.waiting_members(group.name))
        return [pod for pod in members if pod is not None and not pods.is_held_by_others(pod)]

    def _is_pending(self, pod: Object) -> bool:
        """Whether kube-scheduler has still to try the pod with its name."""
        return self.named.nominations.has(pod) and not pods.has_our_gate(pod)

    def _end_judged(self, group: PodGroup, waiting: Sequence[Object]) -> None:
        """An attempt has failed: what its members were expected to get may serve others. Names that
        were written again are judged by time, in a step of their own: any step forgets that it was
        planned."""
        until = self._again_until.get(group.name)
        if until is not None and self.context.clock() < until:
            self.context.queue.add(pods.key_of(waiting[0]), until)
            return
        for pod in waiting:
            if is_judged(pod):
                self.named.end(pods.key_of(pod))

    def _is_refused(self, waiting: Sequence[Object]) -> bool:
        """Whether kube-scheduler has refused all members that it was to try."""
        return all(is_judged(pod) and not self._is_pending(pod) for pod in waiting)

    def _decide(self, group: PodGroup, waiting: Sequence[Object]) -> None:
        self.line.begin_decision(group.name)
        known = self._searches.pop(group.name, None)
        if known is not None and known.group != group:
            self._end_search(known)
            known = None
        found = known or self._begin(group, waiting)
        if found is None:
            return
        first = pods.key_of(waiting[0])
        try:
            has_ended = found.search.advance()
        except Exception:
            self._end_search(found)
            raise
        outcome = found.search.outcome
        if not has_ended:
            self._searches[group.name] = found
            self.context.queue.add(first, self.context.clock())
            return
        self._wake_others(found)
        if isinstance(outcome, GroupPlaced):
            self._name(group, waiting, found.search)
        elif isinstance(outcome, GroupUnplaced):
            self._keep_waiting(group, waiting, found.request, outcome)

    def _begin(self, group: PodGroup, waiting: Sequence[Object]) -> _BegunSearch | None:
        """None if the group waits for something, or needs no node."""
        pending = [pod for pod in waiting if self._is_pending(pod)]
        rest = [pod for pod in waiting if not self._is_pending(pod)]
        try:
            excluded = self.line.reserved_against(waiting[0])
            request = self.reader.read(group, rest, pending, excluded)
        except MemberRefused as refused:
            self.line.refuse(group, waiting, refused.pod, refused.error)
            return None
        if request is None:
            return None
        if not request.members:
            if any(map(pods.has_our_gate, waiting)):
                self._lift(group, waiting, {})
            return None
        if not self.named.nominations.admit(pods.key_of(waiting[0])):
            return None
        for pod in waiting:
            if self.named.is_held(pods.key_of(pod)):
                self.named.end(pods.key_of(pod))  # it was decided before its group was known
        near = self.context.settings.group_labels
        cache = self.context.cache
        search = GroupSearch(request, cache, self.placer, self.nodes, near)
        return _BegunSearch(group, search, self.context.queue.entries(_UNSCHEDULABLE), request)

    def _name(self, group: PodGroup, waiting: Sequence[Object], found: GroupSearch) -> None:
        """All members that have a node get its name."""
        is_again = all(map(is_judged, waiting))
        nodes: dict[Key, str] = {}
        for placement in found.keep():
            nodes[pods.key_of(placement.pod)] = placement.node
            self.named.add(placement.pod, placement.node, placement.claims)
        if is_again:
            if self._again_until.pop(group.name, None) is not None:
                self._take_back(waiting)  # kube-scheduler lacks something else
                for key in nodes:
                    self.named.end(key)
                self.line.wait(group, waiting, GroupReason.DEVICES)
                return
            self._again_until[group.name] = self.context.clock() + _AGAIN_WITHIN
        self._lift(group, waiting, nodes)

    def _lift(self, group: PodGroup, waiting: Sequence[Object], nodes: dict[Key, str]) -> None:
        """Name these nodes, and then lift all gates."""
        self.line.leave(group.name, waiting)
        for key in nodes:
            self.lifted.remove(key)
        begun = naming(group.name, nodes, list(waiting), self.named.followed.hint)
        self._namings[group.name] = begun
        self._go_on(begun)

    def _go_on(self, begun: GroupNaming) -> None:
        begun.go_on(self.context, self.named.followed.hint)
        if not begun.is_done:
            return
        del self._namings[begun.group]
        first = self.context.cache.groups.first_waiting(begun.group)
        if first is not None:  # another member may have come meanwhile
            self.context.queue.add(first, self.context.clock())

    def _keep_waiting(
        self,
        group: PodGroup,
        waiting: Sequence[Object],
        request: GroupRequest,
        unplaced: GroupUnplaced,
    ) -> None:
        """Too few nodes have devices. No member keeps a name: autoscalers would pass over it."""
        first = pods.key_of(waiting[0])
        pending = [pod for pod in waiting if self._is_pending(pod)]
        gated = [pod for pod in waiting if pods.has_our_gate(pod)]
        if pending and not group.quorum(group.counts[Member.BOUND] + len(pending)):
            self._lift(group, waiting, {})  # kube-scheduler would try none of the others
            return
        self._again_until.pop(group.name, None)
        if pending:
            for pod in pending:  # decided anew with the others, which hold them back
                self.named.end(pods.key_of(pod))
            self.context.queue.add(first, self.context.clock())
            return
        if 0 < len(gated) < len(waiting) and not group.quorum(group.counts[Member.BOUND]):
            self._lift(group, waiting, {})  # kube-scheduler would try none of the others
            return
        self._take_back(waiting)
        reason, lacking = GroupReason.DEVICES, unplaced.lacking
        selectors = self.context.cache.state().selectors
        since = self.line.wait(group, waiting, reason, unplaced.reason, lacking)
        self.line.reserve(waiting[0], since, request)
        if not gated:
            self.lifted.add(first)
        elif not is_costly(lacking, selectors) and self.lifted.admit(first):
            self._lift(group, waiting, {})

    def _take_back(self, waiting: Sequence[Object]) -> None:
        """The names of members that kube-scheduler is not about to try."""
        for pod in waiting:
            key = pods.key_of(pod)
            self.named.end(key)
            self.named.forget(key)
            if pods.nominated_node(pod) and not self.context.dispatcher.in_flight(pod):
                self.context.dispatcher.dispatch(ClearNomination(key=key, pod=pod))

    def _drop_search(self, name: Name) -> None:
        if (known := self._searches.pop(name, None)) is not None:
            self._end_search(known)

    def _end_search(self, found: _BegunSearch) -> None:
        found.search.undo()
        self._wake_others(found)

    def _wake_others(self, found: _BegunSearch) -> None:
        """Pods that were decided between two steps of the search found members there, which count
        no longer."""
        queue, numbers = self.context.queue, self.context.cache.state().numbers
        if found.search.touched and queue.entries(_UNSCHEDULABLE) > found.unschedulable:
            queue.on_nodes_changed(tuple(numbers.names(found.search.touched)))
