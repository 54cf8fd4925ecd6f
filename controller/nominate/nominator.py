"""One step for one pod, while kube-scheduler allocates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from controller.allocator.ownership import MixesDrivers
from controller.cache import nodes as node_views
from controller.cache import pods
from controller.cache.keys import Key
from controller.cache.pod_terms import sequence_of
from controller.filter.node_filter import NodeFilter
from controller.groups.reservation import GroupReserver
from controller.nominate.arrivals import Arrivals
from controller.nominate.claim_reader import ClaimReader
from controller.nominate.costly import is_costly
from controller.nominate.followed_names import FollowedNames
from controller.nominate.group_line import GroupLine
from controller.nominate.group_nominator import GroupNominator
from controller.nominate.group_reader import GroupReader
from controller.nominate.lifted_pods import LiftedPods
from controller.nominate.limits_claim import claims_of, has_made_claim
from controller.nominate.metrics import NominationMetrics
from controller.nominate.named_pods import NamedPods
from controller.nominate.nominations import Nominations, is_judged
from controller.placer.candidates import Candidates
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.reconcile.context import Context
from controller.reconcile.waiting_line import WaitingLine
from controller.write.commands import Answer, ClearNomination, LiftGate, NameNode, ReadVolumes
from dra_driver.kube.errors import Conflict, Forbidden, Invalid, KubeError
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object, claim_names
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.selector.allowance import AllowanceSpent

_CLAIMS_WITHIN = 2.0  # seconds in which the claims come that a pod names
_MADE_WITHIN = 50.0
"""Seconds in which kube-controller-manager makes a pod's claims from templates. With its defaults
(1.37.2, kube-api-qps 20, two writes a pod) it makes those of 500 pods. After an absence of the API
server its watches may wait for 30 s. After a minute a gate counts as undecided (`GatedPods`)."""
_EXPECT_TRIES = 3  # a step that was stopped has found out something for the next one
_NOT_NAMED = "GcuNodeNotNamed"
_NOT_LIFTED = "GcuGateNotLifted"


@dataclass(frozen=True, slots=True)
class _Unexpected:
    """A pod that was named for the node, whose devices are to be found again. `tries` were made."""

    node: str
    tries: int = 0


class Nominator:
    """Names the node of a gated pod, and lifts the gate. One instance, one thread.

    A pod for which there is no room keeps its gate: kube-scheduler would try it on all nodes, again
    and again. A few are lifted nevertheless, for autoscalers and preemption, which act on pods that
    kube-scheduler refuses; none of them is costly. A pod that may not have what it asks
    for keeps its gate, too: kube-scheduler would give it cards that no prepare hands over.
    """

    def __init__(
        self,
        context: Context,
        placer: Placer,
        nodes: NodeFilter,
        line: WaitingLine,
        metrics: NominationMetrics,
        *,
        reserver: GroupReserver,
        on_names_stopped: Callable[[], object],
        follow_others: Callable[[], object],
    ) -> None:
        """`on_names_stopped` is called when kube-scheduler has followed too few names;
        `follow_others` while a pod asks for devices of other drivers, and their slices are not
        listed."""
        self.nominations = Nominations(context.cache, context.settings.nomination_limit)
        self._context = context
        self._placer = placer
        self._line = line
        self._metrics = metrics
        self._named = NamedPods(context, self.nominations, FollowedNames(metrics, on_names_stopped))
        self._reader = ClaimReader(context, placer, follow_others)
        self._arrivals = Arrivals(metrics.arrived)
        self._lifted = LiftedPods(context.settings.nomination_waiting)
        self._groups = GroupNominator(
            context,
            placer,
            nodes,
            line=GroupLine(context, line, reserver, metrics),
            reader=GroupReader(context, placer, self._reader, self._arrivals.count),
            named=self._named,
            lifted=self._lifted,
        )
        self._claims_until: dict[Key, float] = {}  # pods that lack a claim
        self._unexpected: dict[Key, _Unexpected] | None = None  # in this order; None at first
        metrics.observe(self.nominations)

    def reconcile(self, key: Key) -> None:
        """Do what is to be done for the pod of that name."""
        context = self._context
        if not self._expects_all():
            context.queue.add(key, context.clock())
            return
        self._forget_requests(key)
        try:
            self._step(key)
        finally:
            self._wake_next()  # also where the pod had no use for a place after all

    def _step(self, key: Key) -> None:
        context = self._context
        pod = context.cache.get(key)
        if pod is None:
            self._arrivals.forget(key)
            return
        if context.dispatcher.in_flight(pod):
            return
        if _is_over(pod):
            self._end(pod)
            return
        self._named.await_verdict(pod)
        group = context.cache.groups.group_of(pod)
        if group is not None:
            self._arrivals.see(pod)
            self._groups.reconcile(pod, group)
            return
        if self.nominations.has(pod) and not is_judged(pod):
            self._named.go_on(key)
            return
        self._named.end(key)
        self._arrivals.see(pod)
        claims = claims_of(context.cache, pod)
        if is_judged(pod) and pods.nominated_node(pod) and not pods.may_preempt(pod):
            # kube-scheduler leaves the name to such a pod alone, and counts the pod there.
            context.dispatcher.dispatch(ClearNomination(key=key, pod=pod))
        elif claims is None:
            self._await_claims(pod)
        else:
            self._decide(pod, claims)

    def _end(self, pod: Object) -> None:
        """The pod is bound, ends, or is held by others."""
        key, is_bound = pods.key_of(pod), bool(pods.node_name(pod))
        self._named.end(key, is_bound=is_bound and not pods.is_done(pod))
        if is_bound and not has_made_claim(pod):
            self._named.forget_made(key)
        self._groups.forget(key, is_bound=is_bound)
        self._named.count(pod)
        self._forget_waiting(key)
        self._arrivals.forget(key)

    def on_claim(self, key: Key, claim: Object | None) -> None:
        """The claim may have been allocated. kube-scheduler may have chosen other devices than
        expected, as it came to pods in another order, or devices that were expected for another
        pod: then it will choose others for the next ones, too."""
        settled = self.nominations.on_claim(key, claim)
        if settled is not None:
            self._named.on_tried(settled.user)
        if settled is not None and settled.as_expected:
            return
        nodes = set() if claim is None else self.nominations.nodes_of(claim)
        if settled is not None:
            self._context.queue.on_nodes_changed([settled.node])
            nodes.add(settled.node)
        for node in sorted(nodes):
            for pod in self.nominations.on(node):
                self.nominations.withdraw(pod)
                self._named_and_unexpected()[pod] = _Unexpected(node)
                if self._named.is_held(pod):
                    self._context.queue.add(pod, self._context.clock())

    def on_named(self, command: NameNode, answer: Answer) -> None:
        """The server has answered the command."""
        self._groups.on_named(command, answer)
        if answer.hint_refused is not None and command.node:
            self._report_refused(command.pod, command.node, answer.hint_refused)

    def on_lifted(self, command: LiftGate, answer: Answer) -> None:
        """The server has answered the command."""
        is_of_group = self._groups.on_lifted(command, answer)
        if not is_of_group and (answer.error is not None or answer.pod is None):
            self._named.end(command.key)  # decided anew, if the pod still has its gate
            self._lifted.remove(command.key)
            self._wake_next()
        if isinstance(answer.error, (Conflict, Forbidden, Invalid)):
            note = (
                "the API server refused that the scheduling gate of this pod is removed, which is "
                f"tried again: {answer.error}"
            )
            self._context.reporter.warn_pod(command.pod, _NOT_LIFTED, note)
        if answer.hint_refused is not None:
            self._named.end(command.key)
            self._named.forget(command.key)
            self._report_refused(command.pod, command.node, answer.hint_refused)

    def _report_refused(self, pod: Object, node: str, error: KubeError) -> None:
        self._metrics.refused.inc()
        note = (
            f"the API server refused that node {node} is named for this pod, so "
            f"kube-scheduler chooses among all nodes: {error}"
        )
        self._context.reporter.warn_pod(pod, _NOT_NAMED, note)

    def on_volumes(self, command: ReadVolumes, answer: Answer) -> None:
        """The pod's volumes were read."""
        self._reader.on_volumes(command, answer)

    def remove_waiting(self, key: Key) -> None:
        """The pod waits for nothing of this controller, or is gone."""
        self._groups.forget(key)
        self._named.end(key)
        self._forget_waiting(key)

    def _forget_waiting(self, key: Key) -> None:
        self._context.queue.remove_waiting(key)
        self._reader.forget(key)
        self._named.forget(key)
        self._lifted.remove(key)
        self._forget_requests(key)
        self._claims_until.pop(key, None)

    def clear(self) -> None:
        """Another replica leads."""
        self._groups.clear()
        for known in (self._named, self._lifted, self._claims_until):
            known.clear()
        self._unexpected = None

    def _expects_all(self) -> bool:
        """Before anything is named: find the devices of the pods that are named and that
        kube-scheduler has not judged, those of a former leader included. False if that is more than
        one step may cost: the next step goes on with it."""
        unexpected = self._named_and_unexpected()
        while unexpected:
            key = next(iter(unexpected))
            again = unexpected.pop(key)
            try:
                self._expect(key, again.node)
            except AllowanceSpent:
                if again.tries + 1 < _EXPECT_TRIES:
                    unexpected[key] = replace(again, tries=again.tries + 1)
                return False
        return True

    def _named_and_unexpected(self) -> dict[Key, _Unexpected]:
        """At first those that a former leader named."""
        if self._unexpected is None:
            changes = self._context.cache.unfinished()
            known = [each.new for each in changes if each.resource is PODS and each.new]
            self._arrivals.begin(known)
            self._unexpected = {
                pods.key_of(pod): _Unexpected(pods.nominated_node(pod))
                for pod in known
                if _is_named(pod)
            }
        return self._unexpected

    def _expect(self, key: Key, node: str) -> None:
        """Count the devices that kube-scheduler will give to the pod on the node, if there are any.
        A pod whose name is held is decided anew if there are none. Raises AllowanceSpent."""
        if not self._finds_devices(key, node) and self._named.is_held(key):
            self._named.end(key)
            self._context.queue.add(key, self._context.clock())

    def _finds_devices(self, key: Key, node: str) -> bool:
        """Whether they count. Raises AllowanceSpent."""
        cache = self._context.cache
        pod = cache.get(key)
        claims = None if pod is None else claims_of(cache, pod)
        if pod is None or claims is None or not (self.nominations.has(pod) or _is_named(pod)):
            return False
        with suppress(Refused, InvalidValue):
            asked = self._reader.read(pod, claims)  # it has its name, whatever is not known yet
            if not asked.wanted:
                return False  # kube-scheduler names the node of any pod whose devices it allocates
            there = replace(asked, volumes=[node_views.only_on(node)])
            # Others of its workload may not count yet, so predictions of spread would be wrong.
            outcome = self._placer.place(there, Candidates(with_unfit=True))
            # Another node is where one of its claims has been allocated meanwhile.
            if isinstance(outcome, Placed) and outcome.node == node:
                self._count_as_named(pod, outcome)
                return True
            if self._groups.is_naming(key):
                self._groups.forget(key)
        return False

    def _decide(self, pod: Object, claims: Mapping[str, Object]) -> None:
        """All claims of the pod exist."""
        self._claims_until.pop(pods.key_of(pod), None)
        try:
            asked = self._reader.read(pod, claims)
        except MixesDrivers:
            self._leave_to_scheduler(pod)
            return
        except (Refused, InvalidValue) as error:
            if not self._takes_back(pod):
                self._line.refuse(pod, claims.values(), str(error))
            return
        self._arrivals.count(asked)
        if asked.wanted:
            if not self._reader.awaits_others(asked):
                self._serve(asked)
        else:
            self._leave_to_scheduler(pod)

    def _serve(self, asked: PodClaims) -> None:
        """Name a node, or let the pod wait."""
        pod, key = asked.pod, pods.key_of(asked.pod)
        is_gated = pods.has_our_gate(pod)
        if not (is_gated or is_judged(pod)):
            return  # kube-scheduler is about to try it
        if is_gated and self.nominations.of_others(pod, [each.claim for each in asked.together]):
            return  # a change of the claim makes the pod active again
        if is_gated and not self.nominations.admit(key):
            return
        known = self._reader.with_volumes(asked)
        if known is None:
            return
        outcome = self._placer.place(known, Candidates(self._line.reserved_against(pod)))
        if isinstance(outcome, Unplaced):
            self._keep_waiting(known, outcome)
        elif is_gated and outcome.preempts:
            self._leave_to_scheduler(pod)  # which chooses where other pods end
        elif is_gated:
            self._name(pod, outcome)
        else:
            self.remove_waiting(key)  # devices are free: kube-scheduler lacks something else

    def _name(self, pod: Object, placed: Placed) -> None:
        self.remove_waiting(pods.key_of(pod))
        self._count_as_named(pod, placed)
        self._named.write(
            LiftGate(
                key=pods.key_of(pod),
                sequence=sequence_of(pod),
                pod=pod,
                node=placed.node,
                hint=self._named.followed.hint,
            )
        )

    def _count_as_named(self, pod: Object, placed: Placed) -> None:
        claims = placed.claims(self._context.cache.state().classes, timestamp="")
        self._named.add(pod, placed.node, claims)

    def _keep_waiting(self, asked: PodClaims, unplaced: Unplaced) -> None:
        """A few of the pods that wait for room have no gate."""
        pod, key = asked.pod, pods.key_of(asked.pod)
        self._named.forget(key)
        if self._takes_back(pod):
            return
        self._line.keep(asked, unplaced)
        if unplaced.depends_on_devices:
            return
        selectors = self._context.cache.state().selectors
        if not pods.has_our_gate(pod):
            self._lifted.add(key)
        elif not is_costly(asked, selectors) and self._lifted.admit(key):
            self._context.dispatcher.dispatch(LiftGate(key=key, pod=pod))

    def _takes_back(self, pod: Object) -> bool:
        """Whether the pod, which is to wait, has its gate and a name: its gate could not be lifted
        after it was named. The name goes, and another step decides anew."""
        if not (pods.has_our_gate(pod) and pods.nominated_node(pod)):
            return False
        self._context.dispatcher.dispatch(ClearNomination(key=pods.key_of(pod), pod=pod))
        return True

    def _leave_to_scheduler(self, pod: Object) -> None:
        """Nothing of ours is to be placed for the pod, or devices of another driver may take the
        place of ours."""
        self.remove_waiting(pods.key_of(pod))
        if pods.has_our_gate(pod):
            self._context.dispatcher.dispatch(LiftGate(key=pods.key_of(pod), pod=pod))

    def _await_claims(self, pod: Object) -> None:
        """A pod is named when all its claims exist: cluster-autoscaler fails on one that names a
        node and lacks a claim. kube-scheduler says what is missing."""
        key, now = pods.key_of(pod), self._context.clock()
        within = _MADE_WITHIN if None in claim_names(pod).values() else _CLAIMS_WITHIN
        until = self._claims_until.get(key, now + within)
        if not pods.has_our_gate(pod) or now >= until:
            self._leave_to_scheduler(pod)
        else:
            self._claims_until[key] = until
            self._context.queue.add(key, until)

    def _forget_requests(self, key: Key) -> None:
        """The pod asks for a place anew if it needs one."""
        self.nominations.forget_request(key)
        self._lifted.forget_request(key)

    def _wake_next(self) -> None:
        """If a pod may be named, or lifted without a name, that could not before: let it have a
        step."""
        for key in (self.nominations.next_to_admit(), self._lifted.next_to_admit()):
            if key is not None:
                self._context.queue.add(key, self._context.clock())


def _is_named(pod: Object) -> bool:
    """Whether the pod waits for kube-scheduler's word about a node."""
    return bool(pods.nominated_node(pod)) and not (
        _is_over(pod) or pods.has_our_gate(pod) or is_judged(pod)
    )


def _is_over(pod: Object) -> bool:
    """Whether the pod is bound, ends, or is held by others."""
    return bool(pods.node_name(pod)) or pods.is_aside(pod)
