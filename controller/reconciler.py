"""Brings one pod, or one claim, a step nearer to where it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from controller import pods
from controller.agenda import Agenda, Key, Subject
from controller.allocator.allocate import Allocation, Unsatisfied, allocate
from controller.allocator.ownership import is_ours
from controller.allocator.request import Wanted, parse_claim
from controller.allocator.state import State
from controller.cache import ClusterCache
from controller.candidates import Candidates, candidates
from controller.memory import Memory
from controller.narrator import Narrator
from controller.nodes import selected_name
from controller.release import is_orphan, is_releasable
from controller.writer import ClaimWriter
from dra_driver.kube.api import Api, Change
from dra_driver.kube.errors import Conflict, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claim import Object, allocation
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.usage_sets import usage_sets


class Reconciler:
    """One instance, one thread. Every method may raise KubeError: look again later.

    `patience` is how many seconds kube-scheduler has to bind a pod whose claims are allocated.
    """

    def __init__(
        self,
        *,
        api: Api,
        cache: ClusterCache,
        writer: ClaimWriter,
        memory: Memory,
        agenda: Agenda,
        narrator: Narrator,
        patience: float,
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._cache = cache
        self._writer = writer
        self._memory = memory
        self._agenda = agenda
        self._narrator = narrator
        self._patience = patience
        self._clock = clock
        self._waiting: set[Key] = set()

    def waiting(self) -> list[Key]:
        """The pods that wait for devices, the most urgent first."""
        found = [(pod, key) for key in self._waiting if (pod := self._cache.pod(key)) is not None]
        return [key for pod, key in sorted(found, key=lambda each: pods.urgency(each[0]))]

    def reconcile(self, key: Key) -> None:
        """Look at the pod or claim and do what is to be done."""
        if key.subject is Subject.CLAIM:
            self._reconcile_claim(key)
        else:
            self._waiting.discard(key)
            self._reconcile_pod(key)
        self._narrator.waiting(len(self._waiting))

    def _reconcile_claim(self, key: Key) -> None:
        claim = self._cache.claim(key)
        if claim is not None and is_orphan(claim, self._cache.pods_of(claim)):
            self._release(claim, "the pod that it was allocated for is gone")

    def _reconcile_pod(self, key: Key) -> None:
        pod = self._cache.pod(key)
        if pod is None or pods.is_done(pod) or pods.is_deleting(pod) or pods.is_gated(pod):
            return
        claims = self._cache.claims_of(pod)
        if claims is None:
            return  # the claim that is missing brings the pod up again
        state = self._cache.state()
        try:
            ours = {name: claim for name, claim in claims.items() if is_ours(claim, state)}
            todo = [claim for claim in ours.values() if allocation(claim) is None]
            if todo:
                wanted = [parse_claim(claim, state.classes) for claim in todo]
                _check_usage(pod, ours)
        except (Refused, InvalidValue) as error:
            self._wait(key, pod, claims.values(), str(error))
            return
        if not todo:
            self._watch_over(key, pod, list(ours.values()))
        elif self._is_undisturbed(key, todo):
            self._serve(key, pod, wanted, list(claims.values()), state)

    def _is_undisturbed(self, key: Key, todo: list[Object]) -> bool:
        now = self._clock()
        until = max(self._memory.quiet_until(_uid(claim)) for claim in todo)
        if until > now:
            self._agenda.add(key, until)
        return until <= now

    def _serve(
        self, key: Key, pod: Object, wanted: list[Wanted], claims: list[Object], state: State
    ) -> None:
        if any(self._memory.was_released(each.ref.uid) for each in wanted):
            live = self._read_live(pod)
            if live is None:
                return
            pod = live
        allocated = [claim for claim in claims if allocation(claim) is not None]
        avoided = self._memory.avoided(pods.uid_of(pod), self._clock())
        where = candidates(pod, allocated, self._cache.nodes(), avoided)
        outcome = _decide(state, wanted, where)
        if isinstance(outcome, Allocation):
            self._grant(key, pod, wanted, outcome, state)
            return
        for until in avoided.values():
            self._agenda.add(key, until)
        if not self._release_all(pod, allocated, "another claim of the pod cannot be allocated"):
            todo = [each.claim for each in wanted]
            self._wait(key, pod, todo, _words(outcome.reason, where))

    def _read_live(self, pod: Object) -> Object | None:
        """The pod as it is now; None where it is another one, or ends."""
        metadata = pod["metadata"]
        try:
            live = self._api.get(PODS, metadata["name"], namespace=metadata["namespace"])
        except NotFound:
            return None
        self._cache.apply(PODS, Change.MODIFIED, live)
        if live["metadata"]["uid"] != metadata["uid"] or pods.is_deleting(live):
            return None
        return None if pods.is_done(live) else live

    def _grant(
        self, key: Key, pod: Object, wanted: list[Wanted], granted: Allocation, state: State
    ) -> None:
        for each, grants in zip(wanted, granted.grants, strict=True):
            try:
                stored = self._writer.allocate(each, grants, granted.node, state.classes)
            except Conflict:
                self._reread(each.claim)
                raise
            self._cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, stored)
            self._narrator.allocated(1)
        now = self._clock()
        self._memory.granted(pods.uid_of(pod), [each.ref.uid for each in wanted], now)
        self._agenda.add(key, now + self._patience)

    def _watch_over(self, key: Key, pod: Object, claims: list[Object]) -> None:
        """All claims are allocated: the scheduler's turn. Where it has said for too long that the
        pod fits nowhere, take all of the pod's allocations back and try another node."""
        if pods.node_name(pod):
            self._memory.forget_pod(pods.uid_of(pod))
            return
        if not self._reclaimable(pod, claims):
            return
        now = self._clock()
        until = self._memory.granted_at(pods.uid_of(pod), now) + self._patience
        if until > now:
            self._agenda.add(key, until)
        elif pods.is_unschedulable(pod):
            self._release_all(pod, claims, "the scheduler does not place the pod there")
            self._agenda.add(key, now)
        else:
            self._agenda.add(key, now + self._patience)

    def _release_all(self, pod: Object, claims: list[Object], why: str) -> bool:
        """Take back all that is ours alone and unreserved, and remember the nodes; False where
        there was nothing to take back, or the pod is bound."""
        if pods.node_name(pod):
            return False
        mine = self._reclaimable(pod, claims)
        for claim in mine:
            node = selected_name((allocation(claim) or {}).get("nodeSelector"))
            self._release(claim, why)
            if node is not None:
                self._memory.failed(pods.uid_of(pod), node, self._clock())
        return bool(mine)

    def _reclaimable(self, pod: Object, claims: Iterable[Object]) -> list[Object]:
        """Our unreserved allocations that serve nobody: every other pod that names the claim
        fits nowhere either."""
        return [
            claim
            for claim in claims
            if is_releasable(claim)
            and all(
                pods.uid_of(user) == pods.uid_of(pod)
                or (pods.is_unschedulable(user) and not pods.node_name(user))
                for user in self._cache.pods_of(claim)
            )
        ]

    def _release(self, claim: Object, why: str) -> None:
        try:
            stored = self._writer.release(claim, why)
        except Conflict:
            self._reread(claim)
            raise
        except NotFound:
            return
        self._memory.released(_uid(claim), self._clock())
        self._cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, stored)
        self._narrator.released()
        now = self._clock()
        for pod in self._cache.pods_of(stored):
            self._agenda.add(pods.key_of(pod), now)
        for key in self.waiting():
            self._agenda.add(key, now)

    def _reread(self, claim: Object) -> None:
        try:
            live = self._writer.read(claim)
        except NotFound:
            return
        self._cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, live)

    def _wait(self, key: Key, pod: Object, claims: Iterable[Object], reason: str) -> None:
        self._waiting.add(key)
        untold_for = self._narrator.unsatisfied(pod, claims, reason)
        if untold_for:
            self._agenda.add(key, self._clock() + untold_for)


def _decide(state: State, wanted: list[Wanted], where: Candidates) -> Allocation | Unsatisfied:
    if where.preferred:
        outcome = allocate(state, wanted, [where.preferred])
        if isinstance(outcome, Allocation):
            return outcome
    return allocate(state, wanted, where.fitting)


def _words(reason: str, where: Candidates) -> str:
    if not where.fitting:
        return f"no node fits the pod: {where.reason}"
    return f"{reason} (of {where.reason})" if where.reason else reason


def _check_usage(pod: Object, ours: Mapping[str, Object]) -> None:
    """Raises Refused where containers share some of our requests but not all."""
    usage_sets(
        pod,
        {name: _uid(claim) for name, claim in ours.items()},
        {
            _uid(claim): frozenset(
                request["name"] for request in claim["spec"]["devices"].get("requests") or ()
            )
            for claim in ours.values()
        },
    )


def _uid(claim: Object) -> str:
    return str(claim["metadata"]["uid"])
