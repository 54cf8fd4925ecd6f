"""What is to be reconciled, when, and in which order (kube-scheduler: scheduling_queue.go).

A key is *active* (to be reconciled now), in *backoff* (until a time), *unschedulable* (a pod that
could not be served, until an event or a time wakes it), or it is in no part: its step or its write
is under way, or nothing is to be done. Pure: told the time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sized
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache import pods
from controller.cache.keys import Key, Subject
from controller.queue.backoff import Cause, RetryBackoff
from controller.queue.fair_queue import FairQueue, Namespaces, Rank
from controller.queue.pod_class import PodClass, QueueingHints
from controller.queue.starvation_guard import StarvationGuard
from dra_driver.model.claim import Object, results

PARTS: Final = ("active", "backoff", "unschedulable")
_BEFORE_PODS: Final[Rank] = -(2**63), ""  # a claim's step frees devices, if anything
_SLICE: Final = 0.1  # seconds of questions, after which the thread looks at its events
_FEW: Final = 1024  # outdated timers that are not worth to be cleared away


class Due(NamedTuple):
    """A key that is to be reconciled, and since when it has been due."""

    key: Key
    since: float


@dataclass(slots=True)
class _Waiting:
    """A pod that waits `since` then. No event helps one without a class: it was refused, or its
    decision was stopped. `woken` means that an event did, and its step has not ended."""

    since: float
    pod_class: PodClass | None = None
    class_names: frozenset[str] = frozenset()
    woken: bool = False


class SchedulingQueue:
    """One instance, one thread. `pod` gives the pod of a key as it is now."""

    def __init__(
        self,
        pod: Callable[[Key], Object | None],
        numbers: NodeNumbers,
        hints: QueueingHints,
        guard: StarvationGuard,
        *,
        backoff: RetryBackoff,
        namespaces: Namespaces,
        clock: Callable[[], float],
    ) -> None:
        self.backoff = backoff
        self._pod = pod
        self._numbers = numbers
        self._hints = hints
        self._guard = guard
        self._clock = clock
        self._namespaces = namespaces
        self.clear()

    def clear(self) -> None:
        """Nothing is planned, and nobody waits."""
        self._active = FairQueue(self._namespaces)
        self._due_since: dict[Key, float] = {}  # of what is active
        self._at: dict[Key, float] = {}  # when what is not active becomes it
        self._timers: list[tuple[float, int, Key]] = []  # of them those in `_at` are valid
        self._pushed = 0
        self._unschedulable: set[Key] = set()
        self._waiting: dict[Key, _Waiting] = {}  # in whatever part
        self._classes: dict[PodClass, FairQueue] = {}  # the unschedulable pods
        self._freed: list[tuple[float, int, set[str]]] = []  # pools, from a time on
        self._pools: set[str] = set()  # what events may have made free or fit
        self._nodes: NodeSet = 0
        self._epoch = self._numbers.epoch
        # What these events have woken, the same events do not wake again; nor do they help any of
        # these classes, with that node reserved against it.
        self._woken: set[Key] = set()
        self._unserved: set[tuple[PodClass, str]] = set()
        self._last: Key | None = None

    def add(self, key: Key, at: float) -> None:
        """Reconcile `key` at the time `at`, or earlier where that is already planned."""
        if key in self._active or at >= self._at.get(key, float("inf")):
            return
        self._at[key] = at
        self._pushed += 1
        heapq.heappush(self._timers, (at, self._pushed, key))
        if len(self._timers) > 2 * len(self._at) + _FEW:
            self._timers = [each for each in self._timers if self._at.get(each[2]) == each[0]]
            heapq.heapify(self._timers)

    def pop(self, now: float) -> Due | None:
        """The key that is to be reconciled first of all that are active, or None."""
        while self._timers and self._timers[0][0] <= now:
            at, _, key = heapq.heappop(self._timers)
            if self._at.get(key) == at:
                self._activate(key, now)
        place = self._active.head(now)
        if place is None:
            return None
        self._active.remove(place.key)
        self._namespaces.serve(place.key.namespace)
        if place.key == self._last:
            self._last = None
        return Due(place.key, self._due_since.pop(place.key))

    def next_wakeup(self) -> float | None:
        """When the next key becomes active; None where nothing is planned."""
        if self._active or ((self._pools or self._nodes) and self._classes):
            return float("-inf")
        while self._timers and self._at.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        times = [self._timers[0][0]] if self._timers else []
        if self._freed and self._classes:
            times.append(self._freed[0][0])
        return min(times, default=None)

    def wait(
        self, key: Key, now: float, pod_class: PodClass | None, class_names: Iterable[str] = ()
    ) -> float:
        """The pod's step has ended: it cannot be served now; gives since when it waits. Its claims
        name the DeviceClasses `class_names`."""
        self._take_out_of_class(key)
        waiting = self._waiting.setdefault(key, _Waiting(now))
        if waiting.woken:
            waiting.woken = False
            self.backoff.begin(key, Cause.WOKEN_IN_VAIN, now)
        waiting.class_names = frozenset(class_names)
        waiting.pod_class = pod_class
        self._unschedulable.add(key)
        if key not in self._woken:
            self._put_into_class(key)
        return waiting.since

    def refuse(
        self, key: Key, now: float, pod_class: PodClass | None, class_names: Iterable[str]
    ) -> None:
        """The same of a pod that may not have what it asks, or what was found for it: it waits
        from now on, and no node is reserved for it. It has another step in a while, as which
        requests are ours depends on what is published."""
        self.wait(key, now, pod_class, class_names)
        self._waiting[key].since = now
        self.on_nodes(self._guard.leaves(key))
        self.add(key, self._guard.next_look(now, now))

    def leave(self, key: Key) -> None:
        """The pod waits no longer."""
        self._take_out_of_class(key)
        self._waiting.pop(key, None)
        self.backoff.forget(key, Cause.WOKEN_IN_VAIN)
        self.on_nodes(self._guard.leaves(key))

    def on_freed(self, claims: Iterable[Object], at: float = 0.0) -> None:
        """What was allocated to these claims is free, and may be had from the time `at` on."""
        pools = {result.pool for claim in claims for result in results(claim)}
        if pools:
            self._pushed += 1
            heapq.heappush(self._freed, (at, self._pushed, pools))

    def on_published(self, pool: str) -> None:
        """The pool has other devices than before."""
        self._pools.add(pool)

    def on_nodes(self, names: Collection[str]) -> None:
        """These nodes may serve pods that they could not serve before."""
        if names:
            self._add_nodes(self._numbers.set_of(names))

    def on_class(self, name: str, now: float) -> None:
        """A DeviceClass is another one: what the claims that name it ask for is, too."""
        for key in list(self._unschedulable):
            if name in self._waiting[key].class_names:
                self._wake(key, now)

    def wake_up(self, now: float) -> None:
        """Activate the first of the pods that the events can help, as soon as it is found. The next
        one follows when that pod's step has ended: so an event costs the steps of the pods that get
        something by it, and no step of any other."""
        if self._last is not None and self._last in self._active:
            return
        self._find_nodes(now)
        if not self._nodes:
            return
        for pod_class, key, reserved in self._heads(now):
            others = self._nodes & ~self._numbers.bit(reserved) if reserved else self._nodes
            if self._hints.helps(pod_class, key, others):
                self._woken.add(key)
                self._last = key if self._wake(key, now) <= now else None
                return
            self._unserved.add((pod_class, reserved))
            if self._clock() - now > _SLICE:
                return
        self._nodes = 0
        self._begin_anew()

    def waiting(self) -> int:
        """How many pods wait for devices."""
        return len(self._waiting)

    def entries(self, part: str) -> int:
        """How many keys stand in the part; safe for any thread."""
        parts: tuple[Sized, ...] = (self._active, self._at, self._unschedulable)
        return len(parts[PARTS.index(part)])

    def _activate(self, key: Key, now: float) -> None:
        at = self._at.pop(key)
        until = self.backoff.until(key)
        if until > now:
            self.add(key, until)
        else:
            self._take_out_of_class(key)
            self._active.push(key, self._rank(key))
            self._due_since[key] = at

    def _find_nodes(self, now: float) -> None:
        """Where the pools are that events were about."""
        while self._freed and self._freed[0][0] <= now:
            self._pools |= heapq.heappop(self._freed)[2]
        if self._pools:
            self._add_nodes(self._hints.nodes_of(self._pools))
            self._pools.clear()
        elif self._epoch != self._numbers.epoch:
            self._add_nodes(0)

    def _add_nodes(self, more: NodeSet) -> None:
        """If nodes were numbered anew meanwhile, it is not known any more which were meant: all."""
        if self._epoch != self._numbers.epoch:
            self._epoch = self._numbers.epoch
            self._nodes = self._numbers.all() if self._nodes else 0
        self._nodes |= more
        self._begin_anew()

    def _heads(self, now: float) -> list[tuple[PodClass, Key, str]]:
        """Of each class that these events were not found to help, the first pod, in order, and the
        node that is reserved against it."""
        found = []
        for pod_class, members in self._classes.items():
            place = members.head(now)
            pod = None if place is None else self._pod(place.key)
            reservation = None if pod is None else self._guard.reserved_against(pod)
            reserved = "" if reservation is None else reservation.node
            if place is not None and (pod_class, reserved) not in self._unserved:
                found.append((place._replace(number=0), pod_class, reserved))
        found.sort(key=lambda each: each[0])
        return [(pod_class, place.key, reserved) for place, pod_class, reserved in found]

    def _wake(self, key: Key, now: float) -> float:
        """Gives when the pod becomes active."""
        self._waiting[key].woken = True
        self._take_out_of_class(key)
        self.add(key, max(now, self.backoff.ends(key, Cause.WOKEN_IN_VAIN)))
        return self._at[key]

    def _put_into_class(self, key: Key) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.pod_class is not None:
            members = self._classes.setdefault(waiting.pod_class, FairQueue(self._namespaces))
            members.push(key, self._rank(key))

    def _take_out_of_class(self, key: Key) -> None:
        self._unschedulable.discard(key)
        waiting = self._waiting.get(key)
        if waiting is None or waiting.pod_class is None:
            return
        members = self._classes.get(waiting.pod_class)
        if members is not None:
            members.remove(key)
            if not members:
                del self._classes[waiting.pod_class]
        waiting.pod_class = None

    def _begin_anew(self) -> None:
        """New events may wake all of them."""
        woken, self._woken = self._woken, set()
        self._unserved.clear()
        for key in woken:
            self._put_into_class(key)

    def _rank(self, key: Key) -> Rank:
        pod = self._pod(key) if key.subject is Subject.POD else None
        return _BEFORE_PODS if pod is None else pods.urgency(pod)
