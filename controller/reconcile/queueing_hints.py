"""Which waiting pods are worth a look when devices become free (kube-scheduler: queueing hints)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from controller.allocator.allocate import can_serve
from controller.allocator.policy import Policy
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key
from controller.queue.agenda import Agenda, Rank
from controller.queue.overspending import Overspending
from controller.queue.starvation_guard import Fairness
from controller.queue.waiting_pods import Cause, Queue
from controller.reconcile.steps import Steps
from dra_driver.model.claim import Object, results
from dra_driver.selector.allowance import AllowanceSpent

_SLICE: Final = 0.1  # seconds, after which the thread looks at its news
_Question = tuple[tuple[object, ...], frozenset[str]]  # a shape, and the nodes that it may be on


class QueueingHints:
    """Collects the nodes on which devices became free, and brings up the pods that these can serve.

    One pod comes up at a time, the first in line. Once it was taken up, the next one follows, until
    the nodes can serve none that did not come up since. So a freed device costs the looks at the
    pods that get it, and no look at a pod that it does not help.

    To find the first one is many steps where tenants ask for what is hard to find: what is left
    of it goes on when the thread has looked at its news.
    """

    def __init__(
        self,
        cache: ClusterCache,
        queue: Queue,
        fairness: Fairness,
        *,
        policy: Policy,
        steps: Steps,
        overspending: Overspending,
        clock: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._fairness = fairness
        self._policy = policy
        self._steps = steps
        self._overspending = overspending
        self._clock = clock
        self._pools: set[str] = set()
        self._nodes: set[str] = set()
        self._offered: set[Key] = set()
        self._unserved: set[_Question] = set()  # since the nodes are these
        self._due: Key | None = None

    def freed(self, claims: Iterable[Object]) -> None:
        """What was allocated to these claims is free."""
        for claim in claims:
            self._pools.update(result.pool for result in results(claim))

    def published(self, pool: str) -> None:
        """The pool has other devices than before."""
        self._pools.add(pool)

    def opened(self, node: str) -> None:
        """The node is no longer kept for one pod."""
        self._nodes.add(node)
        self._begin_anew()

    def is_pending(self) -> bool:
        """Whether `offer` may bring up another pod."""
        return bool(self._pools or self._nodes)

    def taken_up(self, key: Key) -> None:
        """The key's turn has come."""
        if key == self._due:
            self._due = None

    def offer(self, agenda: Agenda, now: float) -> None:
        """Plan a look at the first pod in line that the freed devices can serve, as soon as it is
        found. Waits until the one before was taken up."""
        if self._due in self._queue:
            return
        self._find_nodes()
        if not self._nodes:
            return
        for question, key in self._questions(now):
            if self._can_serve(question, key):
                self._bring_up(agenda, key, now)
                return
            self._unserved.add(question)
            if self._clock() - now > _SLICE:
                return
        self._nodes.clear()
        self._begin_anew()

    def _bring_up(self, agenda: Agenda, key: Key, now: float) -> None:
        self._offered.add(key)
        at = self._queue.wake(key, now, Cause.DEVICES_FREED)
        self._due = key if at <= now else None
        agenda.add(key, at)

    def _begin_anew(self) -> None:
        self._offered.clear()
        self._unserved.clear()

    def _find_nodes(self) -> None:
        if not self._pools:
            return
        self._begin_anew()
        inventory = self._cache.state().inventory
        for name in self._pools:
            node = inventory.node_of(name)
            if node is not None:  # else its slices are an event of their own
                self._nodes.add(node)
        self._pools.clear()

    def _questions(self, now: float) -> list[tuple[_Question, Key]]:
        """What is not answered yet, each for the first in line of the pods that wait for it. Those
        of namespaces that yield come last."""
        open_to: dict[int, frozenset[str]] = {}
        first: dict[_Question, tuple[bool, Rank, Key]] = {}
        for key, waiting in self._queue.items():
            if not waiting.wanted or key in self._offered:
                continue
            nodes = open_to.get(id(waiting.nodes))
            if nodes is None:
                nodes = open_to[id(waiting.nodes)] = waiting.nodes & self._nodes
            nodes = self._without_kept(key, nodes)
            if not nodes:
                continue
            question = waiting.shape, nodes
            if question in self._unserved:
                continue
            yields = self._overspending.excess(key.namespace, now) > 0
            place = yields, waiting.rank, key
            if question not in first or place < first[question]:
                first[question] = place
        found = sorted(first.items(), key=lambda each: each[1])
        return [(question, key) for question, (_, _, key) in found]

    def _can_serve(self, question: _Question, key: Key) -> bool:
        """Whether the nodes can serve the pod; also where that takes too long to find out here."""
        _, nodes = question
        wanted = self._queue[key].wanted
        with self._steps.step("hint", key.namespace, _SLICE):
            try:
                return can_serve(self._cache.state(), wanted, nodes, policy=self._policy)
            except AllowanceSpent:
                return True

    def _without_kept(self, key: Key, nodes: frozenset[str]) -> frozenset[str]:
        pod = self._cache.pod(key)
        kept = self._fairness.kept_from(pod) if nodes and pod is not None else None
        return nodes if kept is None else nodes - {kept.node}
