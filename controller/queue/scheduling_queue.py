"""What is to be reconciled, when, and in which order (kube-scheduler: scheduling_queue.go).

A key is *active* (to be reconciled now), in *backoff* (to be reconciled at a time), *unschedulable*
(a pod that could not be served, until an event helps it), or in no part: its step or its write is
under way, or nothing is to be done for it. Pure.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sized
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache.keys import Key, Subject
from controller.queue.arrival_order import ArrivalOrder
from controller.queue.backoff import BackoffReason, KeyBackoff
from controller.queue.fair_queue import FairQueue, Namespaces, Position
from controller.queue.queueing_hints import HINT_SECONDS, PodClass, QueueingHints
from controller.queue.starvation_guard import StarvationGuard
from dra_driver.model.claims.claim import Object

PARTS: Final = ("active", "backoff", "unschedulable")
_BEFORE_PODS: Final = -(2**63), ""  # the step of a claim may free devices
_LIMIT: Final = 1024  # outdated timers that are not worth a clean-up


class PodLister(Protocol):
    """Where the queue reads pods (client-go: a lister)."""

    def get(self, key: Key, /) -> Object | None:
        """The pod as it is now."""


class QueuedKey(NamedTuple):
    """A key that is to be reconciled, and since when."""

    key: Key
    due_since: float


@dataclass(slots=True)
class QueuedPodInfo:
    """A pod that has waited for devices `since` that time, in whatever part. No event helps a pod
    without a class: it was refused, or its decision was stopped. `is_moved`: an event made it
    active, and its step has not ended."""

    since: float
    pod_class: PodClass | None = None
    is_moved: bool = False


class _Timer(NamedTuple):
    """The key becomes active at that time; of equal times the lower number comes first."""

    at: float
    number: int
    key: Key


class _NodeChange(NamedTuple):
    """From that time on the nodes may serve other pods than before."""

    at: float
    number: int
    nodes: Collection[str]


class SchedulingQueue:
    """One instance, one thread."""

    def __init__(
        self,
        lister: PodLister,
        numbers: NodeNumbers,
        hints: QueueingHints,
        guard: StarvationGuard,
        order: ArrivalOrder,
        *,
        backoff: KeyBackoff,
        namespaces: Namespaces,
        clock: Callable[[], float],
    ) -> None:
        self.backoff = backoff
        self._lister = lister
        self._numbers = numbers
        self._hints = hints
        self._guard = guard
        self._order = order
        self._namespaces = namespaces
        self._clock = clock
        self.clear()

    def clear(self) -> None:
        """Forget all keys and pods, and for which pod a node is reserved."""
        self._guard.clear()
        self._order.clear()
        self._active = FairQueue(self._namespaces)
        self._due_since: dict[Key, float] = {}  # of active keys
        self._due_at: dict[Key, float] = {}  # when keys that are not active become active
        self._timers: list[_Timer] = []  # a heap; valid where they agree with `_due_at`
        self._pushed = 0
        self._unschedulable: set[Key] = set()
        self._foreign: set[Key] = set()  # pods with claims that are not ours as yet
        self._infos: dict[Key, QueuedPodInfo] = {}
        self._classes: dict[PodClass, FairQueue] = {}  # unschedulable pods
        self._changed: set[str] = set()  # nodes that events may have made fit for some class
        self._changes: list[_NodeChange] = []  # a heap; of nodes that will be so later
        # Until a node changes again (`_begin_changes`), a pod is made active at most once, and a
        # class is examined at most once for each node that is reserved against it.
        self._moved: set[Key] = set()
        self._not_helped: set[tuple[PodClass, tuple[str, ...]]] = set()
        self._last_moved: Key | None = None

    def add(self, key: Key, at: float) -> None:
        """Reconcile `key` at the time `at`, or earlier if that is planned already."""
        if key in self._active or at >= self._due_at.get(key, float("inf")):
            return
        self._due_at[key] = at
        self._pushed += 1
        heapq.heappush(self._timers, _Timer(at, self._pushed, key))
        if len(self._timers) > 2 * len(self._due_at) + _LIMIT:
            self._timers = list(filter(self._is_valid, self._timers))
            heapq.heapify(self._timers)

    def pop(self, now: float) -> QueuedKey | None:
        """The first active key; None if no key is active."""
        while self._timers and self._timers[0].at <= now:
            timer = heapq.heappop(self._timers)
            if self._is_valid(timer):
                self._activate(timer.key, now)
        head = self._active.head(now)
        if head is None:
            return None
        self._active.remove(head.key)
        self._namespaces.begin_step(head.key.namespace)
        return QueuedKey(head.key, self._due_since.pop(head.key))

    def next_wakeup(self) -> float | None:
        """When the next key becomes active; None if only an event can make one active."""
        if self._active or (self._changed and self._classes):
            return float("-inf")
        while self._timers and not self._is_valid(self._timers[0]):
            heapq.heappop(self._timers)
        times = [self._timers[0].at] if self._timers else []
        if self._changes and self._classes:
            times.append(self._changes[0].at)
        return min(times, default=None)

    def add_unschedulable(self, key: Key, now: float, pod_class: PodClass | None) -> float:
        """The pod was not served in its step. Returns since when it waits."""
        self._remove_from_class(key)
        info = self._infos.setdefault(key, QueuedPodInfo(now))
        if info.is_moved:
            info.is_moved = False
            self.backoff.begin(key, BackoffReason.STILL_UNSCHEDULABLE, now)
        info.pod_class = pod_class
        self._unschedulable.add(key)
        if key not in self._moved:
            self._add_to_class(key)
        return info.since

    def add_refused(self, key: Key, now: float, pod_class: PodClass | None) -> None:
        """The pod may not have what it requests, or what was chosen for it. It waits from now on,
        and no node is reserved for it. It has another step later, because which requests are ours
        depends on what is published."""
        self.add_unschedulable(key, now, pod_class)
        self._infos[key].since = now
        self.on_nodes_changed(self._guard.release(key))
        self.add(key, self._guard.next_check(now, now))

    def add_foreign(self, key: Key, now: float) -> None:
        """The pod waits for claims that are not ours. It has another step later, because they may
        become ours: by what is published, or by a changed DeviceClass."""
        self._foreign.add(key)
        self.add(key, self._guard.next_check(now, now))

    def remove_waiting(self, key: Key) -> None:
        """The pod waits for devices no longer."""
        self._foreign.discard(key)
        self._remove_from_class(key)
        self._infos.pop(key, None)
        self.backoff.forget(key, BackoffReason.STILL_UNSCHEDULABLE)
        self.on_nodes_changed(self._guard.release(key))

    def forget(self, key: Key) -> None:
        """The pod is gone. Another one may have its name."""
        self._order.forget(key)
        self.backoff.forget(key, *BackoffReason)

    def on_nodes_changed(self, names: Collection[str], at: float | None = None) -> None:
        """These nodes may serve other pods than before, now or from the time `at`."""
        if at is not None:
            self._pushed += 1
            heapq.heappush(self._changes, _NodeChange(at, self._pushed, names))
        elif names:
            self._changed.update(names)
            self._begin_changes()

    def on_device_class_changed(self, now: float) -> None:
        """A DeviceClass changed: every unschedulable pod may request something else now, and
        claims of other pods may be ours."""
        for key in list(self._unschedulable):
            self._move(key, now)
        for key in self._foreign:
            self.add(key, now)

    def move_to_active_or_backoff(self, now: float) -> None:
        """Make the first pod active that the changes can help (kube-scheduler moves all pods that
        an event helps). The next pod follows when the step of this one has begun: an event costs
        the steps of the pods that get something by it, and no other step."""
        if self._last_moved is not None and self._last_moved in self._active:
            return
        while self._changes and self._changes[0].at <= now:
            self.on_nodes_changed(heapq.heappop(self._changes).nodes)
        if not self._changed:
            return
        nodes = self._numbers.set_of(self._changed)
        for pod_class, key, reserved in self._class_heads(now):
            if (pod_class, reserved) in self._not_helped:
                continue
            if self._hints.helps(pod_class, key, self._usable(nodes, reserved)):
                self._moved.add(key)
                self._move(key, now)
                self._last_moved = key
                return
            self._not_helped.add((pod_class, reserved))
            if self._clock() - now > HINT_SECONDS:
                return
        self._changed.clear()
        self._begin_changes()

    def classes_served_by(self, names: Collection[str]) -> list[PodClass]:
        """The classes that one of these nodes can serve as the cluster is counted now; in a
        step."""
        if not self._classes:
            return []
        nodes = self._numbers.set_of(names)
        served = {
            pod_class: None
            for pod_class, _, reserved in self._class_heads(self._clock())
            if self._hints.can_serve(pod_class, self._usable(nodes, reserved), if_unknown=False)
        }
        return list(served)

    def members(self, pod_class: PodClass) -> Iterator[Key]:
        """The pods of the class that wait for an event, by priority and age."""
        members = self._classes.get(pod_class)
        return iter(()) if members is None else members.keys()

    def waiting_pods(self) -> int:
        """How many pods wait for devices."""
        return len(self._infos)

    def is_waiting(self, key: Key) -> bool:
        """Whether the pod waits for devices; safe for any thread."""
        return key in self._infos

    def longest_wait(self) -> float:
        """For how many seconds the pod has waited that has waited longest; 0 if none waits. Safe
        for any thread."""
        now = self._clock()
        return max((now - each.since for each in list(self._infos.values())), default=0.0)

    def entries(self, part: str) -> int:
        """How many keys are in the part; safe for any thread."""
        parts: tuple[Sized, ...] = (self._active, self._due_at, self._unschedulable)
        return len(parts[PARTS.index(part)])

    def _is_valid(self, timer: _Timer) -> bool:
        return self._due_at.get(timer.key) == timer.at

    def _activate(self, key: Key, now: float) -> None:
        due_at = self._due_at.pop(key)
        blocked_until = self.backoff.blocked_until(key)
        if blocked_until > now:
            self.add(key, blocked_until)
        else:
            self._remove_from_class(key)
            self._push(self._active, key)
            self._due_since[key] = due_at

    def _class_heads(self, now: float) -> list[tuple[PodClass, Key, tuple[str, ...]]]:
        """Returns each class with its first pod, and the nodes that are reserved against this pod,
        in the order in which these pods wait. If there are such nodes, the class comes again with
        the first of the pods that may use them: by the turns of namespaces they may be behind."""
        heads: list[tuple[Position, PodClass, tuple[str, ...]]] = []
        for pod_class, members in self._classes.items():
            head = members.head(now)
            pod = None if head is None else self._lister.get(head.key)
            reservation = None if pod is None else self._guard.reserved_against(pod)
            reserved = () if reservation is None else reservation.nodes
            if head is not None:
                heads.append((head, pod_class, reserved))
            if reservation is None:
                continue
            first = members.head_until(reservation.rank, now)
            if first is not None:
                heads.append((first, pod_class, ()))
        heads.sort(key=lambda item: item[0])
        return [(pod_class, head.key, reserved) for head, pod_class, reserved in heads]

    def _usable(self, nodes: NodeSet, reserved: tuple[str, ...]) -> NodeSet:
        return nodes & ~self._numbers.set_of(reserved)

    def _move(self, key: Key, now: float) -> None:
        self._infos[key].is_moved = True
        self._remove_from_class(key)
        until = self.backoff.until(key, BackoffReason.STILL_UNSCHEDULABLE)
        self.add(key, max(now, until))

    def _add_to_class(self, key: Key) -> None:
        info = self._infos.get(key)
        if info is not None and info.pod_class is not None:
            members = self._classes.setdefault(info.pod_class, FairQueue(self._namespaces))
            self._push(members, key)

    def _remove_from_class(self, key: Key) -> None:
        self._unschedulable.discard(key)
        info = self._infos.get(key)
        if info is None or info.pod_class is None:
            return
        members = self._classes.get(info.pod_class)
        if members is not None:
            members.remove(key)
            if not members:
                del self._classes[info.pod_class]
        info.pod_class = None

    def _begin_changes(self) -> None:
        """New changes may help every class, and make every pod active."""
        moved, self._moved = self._moved, set()
        self._not_helped.clear()
        for key in moved:
            self._add_to_class(key)

    def _push(self, queue: FairQueue, key: Key) -> None:
        pod = self._lister.get(key) if key.subject is Subject.POD else None
        if pod is not None:
            queue.push(key, self._order.see(key, pod))
            return
        self._pushed += 1
        queue.push(key, (*_BEFORE_PODS, self._pushed))
