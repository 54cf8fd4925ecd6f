"""One step for the waiting members of a PodGroup, while kube-scheduler allocates.

kube-scheduler (1.37.2, `schedule_one_podgroup.go`) tries a group as one, once none of its waiting
members has a gate. It tries them in the order of its queue, each with the others' names counted,
and binds a gang whole or not at all. After an attempt that failed, members that had found a place
lose their names, and the others keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.ownership import MixesDrivers
from controller.cache import pods
from controller.cache.keys import Key
from controller.cache.pod_groups import Member, Name, PodGroup
from controller.filter.node_filter import NodeFilter
from controller.groups.request import GroupPlaced, GroupRequest, GroupUnplaced
from controller.groups.reservation import GroupReserver
from controller.groups.search import GroupSearch
from controller.nominate.claim_reader import ClaimReader
from controller.nominate.group_naming import GroupNaming, naming
from controller.nominate.lifted_pods import LiftedPods
from controller.nominate.limits_claim import claims_of
from controller.nominate.metrics import GroupReason, NominationMetrics
from controller.nominate.named_pods import NamedPods
from controller.nominate.nominations import is_judged
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.queue.queueing_hints import PodClass
from controller.reconcile.context import Context
from controller.reconcile.waiting_line import WaitingLine
from controller.write.commands import Answer, ClearNomination, LiftGate, NameNode
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.selector.allowance import AllowanceSpent

_UNSCHEDULABLE: Final = "unschedulable"
_AGAIN_WITHIN: Final = 30.0
"""Seconds that kube-scheduler has to follow names that were written again: it says nothing of the
attempts in between, if it would say the same."""


@dataclass(slots=True)
class _Search:
    """A search that may go on in the next step, for the group as it was. So many pods were
    `unschedulable` when it began."""

    group: PodGroup
    search: GroupSearch
    unschedulable: int
    request: GroupRequest


class GroupNominator:
    """Names the nodes of all waiting members of a group, then lifts their gates. The first of them
    by name stands for the group in the queue. One instance, one thread."""

    def __init__(
        self,
        context: Context,
        placer: Placer,
        nodes: NodeFilter,
        *,
        line: WaitingLine,
        reader: ClaimReader,
        named: NamedPods,
        reserver: GroupReserver,
        lifted: LiftedPods,
        metrics: NominationMetrics,
        is_costly: Callable[[PodClaims], bool],
        on_read: Callable[[PodClaims], object],
    ) -> None:
        """`is_costly`: whether kube-scheduler should not try such a pod again and again. `on_read`
        is called with what each member asks for."""
        self._context = context
        self._placer = placer
        self._nodes = nodes
        self._line = line
        self._reader = reader
        self._named = named
        self._reserver = reserver
        self._lifted = lifted
        self._is_costly = is_costly
        self._on_read = on_read
        self._group_of: dict[Key, Name] = {}
        self._searches: dict[Name, _Search] = {}
        self._namings: dict[Name, GroupNaming] = {}
        self._metrics = metrics
        self._waits: dict[Name, frozenset[Key]] = {}  # members that the group waits with
        self._reasons: dict[Name, GroupReason] = {}
        self._complete_at: dict[Name, float] = {}  # groups that are not bound
        self._since: dict[Name, float] = {}  # groups that are not complete
        self._again_until: dict[Name, float] = {}  # groups whose names were written again
        metrics.observe_groups(lambda reason: list(self._reasons.values()).count(reason))

    def reconcile(self, pod: Object, group: PodGroup) -> None:
        """Do what is to be done for the group of the pod, which waits."""
        key, queue, now = pods.key_of(pod), self._context.queue, self._context.clock()
        self._group_of[key] = group.name
        if (begun := self._namings.get(group.name)) is not None:
            begun.failed.discard(key)
            self._go_on(begun)
            return
        first = self._context.cache.groups.first_waiting(group.name)
        if first is None:
            return
        if key != first:
            if key not in self._waits.get(group.name, ()):
                queue.add(first, now)
            return
        waiting = self._waiting(group)
        self._group_of |= dict.fromkeys(map(pods.key_of, waiting), group.name)
        self._end_judged(group, waiting)
        is_gated = any(map(pods.has_our_gate, waiting))
        if any(map(self._context.dispatcher.in_flight, waiting)):
            self._waits.pop(group.name, None)  # each answer is a step for the first member
        elif lack := group.waits_for():
            self._await(group, waiting, lack)
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
            self._named.end(command.key)
            self._named.forget(command.key)

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
        self._waits.pop(name, None)
        first = self._context.cache.groups.first_waiting(name)
        if first is None:
            self._end_group(name, is_bound=is_bound)
        elif not is_bound:  # kube-scheduler says of each of the others what becomes of it
            self._context.queue.add(first, self._context.clock())

    def _break_off(self, begun: GroupNaming) -> None:
        del self._namings[begun.group]
        for member in begun.nodes:
            self._named.end(member)

    def _end_group(self, name: Name, *, is_bound: bool) -> None:
        """No member waits."""
        at = self._complete_at.pop(name, None)
        if at is not None and is_bound:
            self._metrics.group_seconds.observe(self._context.clock() - at)
        for known in (self._since, self._reasons, self._again_until):
            known.pop(name, None)

    def is_naming(self, key: Key) -> bool:
        """Whether the pod is being named with the others of its group."""
        begun = self._namings.get(self._group_of.get(key, ""))
        return begun is not None and begun.has(key)

    def clear(self) -> None:
        """Another replica leads."""
        for name in tuple(self._searches):
            self._drop_search(name)
        for known in (
            *(self._group_of, self._namings, self._waits, self._since, self._again_until),
            *(self._reasons, self._complete_at),
        ):
            known.clear()

    def _waiting(self, group: PodGroup) -> list[Object]:
        members = map(
            self._context.cache.get, self._context.cache.groups.waiting_members(group.name)
        )
        return [pod for pod in members if pod is not None]

    def _is_pending(self, pod: Object) -> bool:
        """Whether kube-scheduler has still to try the pod with its name."""
        return self._named.nominations.has(pod) and not pods.has_our_gate(pod)

    def _end_judged(self, group: PodGroup, waiting: Sequence[Object]) -> None:
        """An attempt has failed: what its members were expected to get may serve others. Names that
        were written again are judged by time."""
        until = self._again_until.get(group.name)
        if until is not None and self._context.clock() < until:
            return
        for pod in waiting:
            if is_judged(pod):
                self._named.end(pods.key_of(pod))

    def _is_refused(self, waiting: Sequence[Object]) -> bool:
        """Whether kube-scheduler has refused all members that it was to try."""
        return all(is_judged(pod) and not self._is_pending(pod) for pod in waiting)

    def _decide(self, group: PodGroup, waiting: Sequence[Object]) -> None:
        self._since.pop(group.name, None)
        self._complete_at.setdefault(group.name, self._context.clock())
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
        except AllowanceSpent:
            self._end_search(found)
            raise
        outcome = found.search.outcome
        if not has_ended:
            self._searches[group.name] = found
            self._context.queue.add(first, self._context.clock())
            return
        self._wake_others(found)
        if isinstance(outcome, GroupPlaced):
            self._name(group, waiting, found.search)
        elif isinstance(outcome, GroupUnplaced):
            self._keep_waiting(group, waiting, found.request, outcome)

    def _begin(self, group: PodGroup, waiting: Sequence[Object]) -> _Search | None:
        """None if the group waits for something, or needs no node."""
        pending = [pod for pod in waiting if self._is_pending(pod)]
        rest = [pod for pod in waiting if not self._is_pending(pod)]
        members = [self._read(group, waiting, pod) for pod in rest]
        asked = [each for each in members if each is not None and _lacks_devices(each)]
        free = len(rest) - len(asked)  # need no node
        if None in members:
            return None
        if not asked:
            if any(map(pods.has_our_gate, waiting)):
                self._lift(group, waiting, {})
            return None
        if not self._named.nominations.admit(pods.key_of(waiting[0])):
            return None
        request = GroupRequest(
            asked,
            quorum=group.quorum(group.counts[Member.BOUND] + len(pending) + free),
            beside=self._beside(group, pending),
            topology_key=group.topology_key,
            is_spread=self._is_spread(group, asked[0]),
            excluded=self._reserved(waiting[0]),
        )
        near = self._context.settings.group_labels
        cache = self._context.cache
        search = GroupSearch(request, cache, self._placer, self._nodes, near)
        return _Search(group, search, self._context.queue.entries(_UNSCHEDULABLE), request)

    def _read(self, group: PodGroup, waiting: Sequence[Object], pod: Object) -> PodClaims | None:
        """What the member asks for. None if the group waits until that is known, or for a person:
        its gate would be lifted with the others', and kube-scheduler would give it cards that no
        prepare hands over."""
        claims = claims_of(self._context.cache, pod)
        if claims is None:
            return None
        try:
            asked = self._reader.read(pod, claims)
        except MixesDrivers:
            return PodClaims(pod, ())
        except (Refused, InvalidValue) as error:
            self._context.cache.groups.set_found(pod, Member.REFUSED)
            self._line.refuse(pod, claims.values(), str(error))
            name = pod["metadata"]["name"]
            self._reasons[group.name] = GroupReason.REFUSED
            self._wait(group, waiting, None, f"pod {name} may not have what it asks for: {error}")
            return None
        self._on_read(asked)
        if self._reader.awaits_others(asked):
            return None
        return self._reader.with_volumes(asked)

    def _beside(self, group: PodGroup, pending: Sequence[Object]) -> int:
        """The nodes of members that are bound, or that kube-scheduler is about to try."""
        numbers = self._context.cache.state().numbers
        bound = map(self._context.cache.get, self._context.cache.groups.bound_members(group.name))
        names = {pods.node_name(pod) for pod in bound if pod is not None}
        names |= {pods.nominated_node(pod) for pod in pending}
        return numbers.set_of([name for name in names if name in numbers])

    def _is_spread(self, group: PodGroup, asked: PodClaims) -> bool:
        if group.packing is not None:
            return group.packing is Packing.SPREAD
        return self._placer.spreads(asked)

    def _reserved(self, pod: Object) -> int:
        reserved = self._line.reserved_against(pod)
        return self._context.cache.state().numbers.set_of(reserved.keys())

    def _name(self, group: PodGroup, waiting: Sequence[Object], found: GroupSearch) -> None:
        """All members that have a node get its name."""
        is_again = all(map(is_judged, waiting))
        nodes: dict[Key, str] = {}
        for each in found.keep():
            nodes[pods.key_of(each.pod)] = each.node
            self._named.add(each.pod, each.node, each.claims)
        now = self._context.clock()
        if is_again:
            if self._again_until.pop(group.name, None) is not None:
                self._take_back(waiting)  # kube-scheduler lacks something else
                for key in nodes:
                    self._named.end(key)
                self._wait(group, waiting, None, "")
                return
            self._again_until[group.name] = now + _AGAIN_WITHIN
            self._context.queue.add(pods.key_of(waiting[0]), now + _AGAIN_WITHIN)
        self._lift(group, waiting, nodes)

    def _lift(self, group: PodGroup, waiting: Sequence[Object], nodes: dict[Key, str]) -> None:
        """Name these nodes, and then lift all gates."""
        self._waits.pop(group.name, None)
        self._reasons.pop(group.name, None)
        for pod in waiting:
            key = pods.key_of(pod)
            self._context.queue.remove_waiting(key)
            if key in nodes:
                self._lifted.remove(key)
        begun = naming(group.name, nodes, list(waiting), self._named.followed.hint)
        self._namings[group.name] = begun
        self._go_on(begun)

    def _go_on(self, begun: GroupNaming) -> None:
        begun.go_on(self._context, self._named.followed.hint)
        if not begun.is_done:
            return
        del self._namings[begun.group]
        first = self._context.cache.groups.first_waiting(begun.group)
        if first is not None:  # another member may have come meanwhile
            self._context.queue.add(first, self._context.clock())

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
                self._named.end(pods.key_of(pod))
            self._context.queue.add(first, self._context.clock())
            return
        if 0 < len(gated) < len(waiting) and not group.quorum(group.counts[Member.BOUND]):
            self._lift(group, waiting, {})  # kube-scheduler would try none of the others
            return
        self._take_back(waiting)
        self._reasons[group.name] = GroupReason.DEVICES
        since = self._wait(group, waiting, unplaced.lacking, unplaced.reason)
        self._reserve(waiting[0], since, request)
        if not gated:
            self._lifted.add(first)
        elif not self._is_costly(unplaced.lacking) and self._lifted.admit(first):
            self._lift(group, waiting, {})

    def _await(self, group: PodGroup, waiting: Sequence[Object], lack: str) -> None:
        """The group is not complete: its pods are made one after the other."""
        now = self._context.clock()
        since = self._since.setdefault(group.name, now)
        self._take_back(waiting)
        self._reasons[group.name] = GroupReason.INCOMPLETE
        quiet = since + self._context.settings.quiet_time
        if now < quiet:
            self._context.queue.add(pods.key_of(waiting[0]), quiet)
        else:
            self._wait(group, waiting, None, lack)

    def _wait(
        self, group: PodGroup, waiting: Sequence[Object], lacking: PodClaims | None, reason: str
    ) -> float:
        """The first member is in line for all: what helps the member that is `lacking` devices may
        help the group. Returns since when it waits."""
        queue, now = self._context.queue, self._context.clock()
        first, *others = map(pods.key_of, waiting)
        kind = None if lacking is None else PodClass.of(lacking)
        since = queue.add_unschedulable(first, now, kind)
        for key in others:
            queue.add_unschedulable(key, now, None)
        self._waits[group.name] = frozenset(map(pods.key_of, waiting))
        again = now + self._context.settings.fairness_patience
        if reason:
            self._line.report(waiting[0], (), reason)
            seconds = self._context.reporter.group_waits(group.obj, reason)
            again = min(again, now + seconds) if seconds else again
        queue.add(first, again)
        return since

    def _reserve(self, first: Object, since: float, request: GroupRequest) -> None:
        """If the group has waited longest: pods behind it get nothing on these nodes."""
        queue, guard, now = self._context.queue, self._line.guard, self._context.clock()
        freed = guard.reserve_set(first, since, now, lambda: self._reserver.nodes_for(request))
        queue.on_nodes_changed(freed)
        queue.add(pods.key_of(first), guard.next_check(since, now))

    def _take_back(self, waiting: Sequence[Object]) -> None:
        """The names of members that kube-scheduler is not about to try."""
        for pod in waiting:
            key = pods.key_of(pod)
            self._named.end(key)
            if pods.nominated_node(pod) and not self._context.dispatcher.in_flight(pod):
                self._context.dispatcher.dispatch(ClearNomination(key=key, pod=pod))

    def _drop_search(self, name: Name) -> None:
        if (known := self._searches.pop(name, None)) is not None:
            self._end_search(known)

    def _end_search(self, found: _Search) -> None:
        found.search.undo()
        self._wake_others(found)

    def _wake_others(self, found: _Search) -> None:
        """Pods that were decided between two steps of the search found members there, which count
        no longer."""
        queue, numbers = self._context.queue, self._context.cache.state().numbers
        if found.search.touched and queue.entries(_UNSCHEDULABLE) > found.unschedulable:
            queue.on_nodes_changed(tuple(numbers.names(found.search.touched)))


def _lacks_devices(asked: PodClaims) -> bool:
    return bool(asked.wanted)
