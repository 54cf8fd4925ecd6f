"""The deciding thread: it handles events, then reconciles the first active key, and so on.

A fault with one object or key sets that one aside (`FaultIsolator`): no fault ends the thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from controller.cache.cache import RESOURCE_OF, WATCHED, Changed
from controller.cache.keys import Key, Subject
from controller.cache.pods import key_of
from controller.leaderelection.fence import Fence, NotLeader
from controller.placer.trials import TrialPlacer
from controller.queue.backoff import BackoffReason
from controller.queue.event_queue import Event, EventQueue, ResourceEvent
from controller.queue.fair_queue import StepLimiter
from controller.reconcile.context import Context
from controller.reconcile.event_handlers import EventHandlers
from controller.reconcile.faults import FaultIsolator
from controller.reconcile.key_reconciler import KeyReconciler
from controller.reconcile.pod_start import PodStartRecorder
from controller.reconcile.waiting_line import WaitingLine
from controller.write.commands import WriteDone
from dra_driver.kube.api import Change
from dra_driver.kube.errors import TooManyRequests
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.errors import GcuError
from dra_driver.selector.allowance import AllowanceSpent
from dra_driver.telemetry.logs import new_call
from dra_driver.util.background import Background
from dra_driver.util.backoff import Backoff
from dra_driver.util.collection import no_collection

logger = logging.getLogger(__name__)


class Worker(Background):
    """Handles events always. It reconciles only while the fence is open and every kind of object
    was listed once. `begin_term` fences the previous leader, and returns the term; after a GcuError
    it is called again."""

    def __init__(
        self,
        context: Context,
        *,
        events: EventQueue,
        reconciler: KeyReconciler,
        begin_term: Callable[[], str],
        fence: Fence,
        steps: StepLimiter,
        faults: FaultIsolator,
        pod_starts: PodStartRecorder,
        line: WaitingLine,
        trials: TrialPlacer,
        draw: Callable[[], float],
    ) -> None:
        super().__init__("worker", interrupt=events.interrupt)
        self._events = events
        self._cache = context.cache
        self._queue = context.queue
        self._dispatcher = context.dispatcher
        self._reporter = context.reporter
        self._clock = context.clock
        self._handlers = EventHandlers(context, reconciler.on_change)
        self._reconciler = reconciler
        self._begin_term = begin_term
        self._fence = fence
        self._steps = steps
        self._faults = faults
        self._pod_starts = pod_starts
        self._line = line
        self._trials = trials
        self._listed: set[Resource] = set()
        self._is_synced = False
        self._term = ""  # the one in which the previous leader was fenced
        self._takeover_backoff = Backoff(first=0.1, draw=draw)
        self._takeover_at = 0.0
        self._has_queued_all = False  # since this replica leads
        self._fault_backoff = Backoff(first=0.1, longest=5.0, draw=draw)

    def is_synced(self) -> bool:
        """Whether every kind of object was listed once."""
        return self._is_synced

    def step_seconds(self) -> float:
        """For how many seconds the present step has run; safe for any thread."""
        return self._steps.running_for()

    def fenced_term(self) -> str:
        """The last term in which the previous leader was fenced; safe for any thread."""
        return self._term

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.run_once(self.next_wakeup())
            except Exception:
                logger.exception("the deciding thread goes on after a fault")
                self._reporter.faults.inc()
                self._wait(self._fault_backoff.next())
            else:
                self._fault_backoff.reset()

    def run_once(self, timeout: float | None) -> None:
        """Handle the events, waiting for one up to `timeout` seconds; then reconcile one key."""
        for event in self._events.take(timeout):
            self.handle_event(event)
        if not self._may_act():
            self._queue.clear()  # a follower would fill it for weeks
            self._reporter.clear()
            self._reconciler.clear()
            self._has_queued_all = False
        elif not self._has_taken_over():
            self._take_over()
        elif not self._has_queued_all:
            self._queue_all()
        elif self._dispatcher.has_room():
            self._queue.move_to_active_or_backoff(self._clock())
            queued = self._queue.pop(self._clock())
            if queued is not None:
                with self._step(queued.key, queued.key.subject):
                    self._reconciler.reconcile(queued.key)
                if queued.key.subject is Subject.POD:
                    self._reporter.waits.observe(self._clock() - queued.due_since)

    def next_wakeup(self) -> float | None:
        """Seconds until there is something to do without an event; None if only an event helps."""
        if not self._may_act():
            return None  # a won lease interrupts the wait for events
        if not self._has_taken_over():
            return max(0.0, self._takeover_at - self._clock())
        if not self._has_queued_all:
            return 0.0
        if not self._dispatcher.has_room():
            return None  # an answer is an event
        due = self._queue.next_wakeup()
        return None if due is None else max(0.0, due - self._clock())

    def handle_event(self, event: Event) -> None:
        """Put what the event says into the cache, and the keys that it concerns into the queue."""
        if isinstance(event, WriteDone):
            self._dispatcher.finish(event)
            with self._step(event.command.key, "written"):
                for changed in self._changes_by(event):
                    self._on_change(changed)
                self._reconciler.on_answer(event)
        elif isinstance(event, ResourceEvent):
            change = self._cache.apply(event.resource, event.change, event.object)
            self._on_changes([] if change is None else [change])
        else:
            self._faults.on_replaced(event.resource)
            self._listed.add(event.resource)
            self._is_synced = self._listed.issuperset(WATCHED)
            with no_collection():
                changes = self._cache.replace(
                    event.resource, event.items, is_served=event.is_served
                )
            # A new leader gets all objects again (`unfinished`).
            self._on_changes(each for each in changes if self._may_act() or each.old is not None)
            for key in self._cache.groups.wake():  # they may be followed now, and none exist
                self._queue.add(key, self._clock())
            with no_collection():  # here, or the first pod would wait until all slices are read
                self._cache.state().fleet.refresh()
            if self.is_synced():
                no_collection.end_start()
        self._queue.on_nodes_changed(self._cache.assigned.take_freed())

    def _may_act(self) -> bool:
        return self.is_synced() and self._fence.is_open()

    def _has_taken_over(self) -> bool:
        return self._term == self._fence.term

    def _queue_all(self) -> None:
        self._has_queued_all = True
        self._on_changes(self._cache.unfinished())
        for claim in self._dispatcher.uncertain():  # which the cache may not have any longer
            self._queue.add(Key.of_claim(claim), self._clock())

    def _on_changes(self, changes: Iterable[Changed]) -> None:
        for changed in changes:
            with self._faults.isolate(changed.resource, changed.new or changed.old or {}):
                self._on_change(changed)

    def _on_change(self, changed: Changed) -> None:
        now = self._clock()
        if self._may_act():
            self._pod_starts.on_change(changed)
        if changed.resource is PODS and changed.old is not None and changed.is_gone():
            self._reconciler.remove_waiting(key_of(changed.old))
            self._queue.forget(key_of(changed.old))
            self._trials.on_pod(changed.old, is_gone=True)
        if changed.resource is PODS and changed.new is not None:
            self._trials.on_pod(changed.new, is_gone=False)
        for key in self._handlers.on_change(changed, now):
            self._queue.add(key, min(now, self._events.received_at))

    def _changes_by(self, done: WriteDone) -> Iterator[Changed]:
        """What the server answered is an event like those of the watches."""
        command, answer = done.command, done.answer
        changes = [(RESOURCE_CLAIMS, Change.MODIFIED, claim) for claim in answer.claims]
        if answer.pod is not None:
            changes.append((PODS, Change.MODIFIED, answer.pod))
        elif answer.pod_changed and command.pod is not None:
            changes.append((PODS, Change.DELETED, command.pod))
        for change in changes:
            changed = self._cache.apply(*change)
            if changed is not None:
                yield changed

    def _take_over(self) -> None:
        if self._clock() < self._takeover_at:
            return
        try:
            self._term = self._begin_term()
        except NotLeader as error:
            logger.info("the term ended before it began: %s", error)
        except Exception as error:
            if not isinstance(error, GcuError):
                logger.exception("the term cannot begin after a fault")
                self._reporter.faults.inc()
            delay = self._takeover_backoff.next()
            self._takeover_at = self._clock() + delay
            self._reporter.failed("the beginning of the term", error, delay)
        else:
            self._takeover_backoff.reset()

    @contextmanager
    def _step(self, key: Key, kind: str) -> Iterator[None]:
        """Work for one key. After an error the key backs off, and no exception leaves."""
        with new_call(str(key)):
            try:
                with self._steps.step(kind, key.namespace):
                    yield
            except AllowanceSpent as spent:
                seconds = self._back_off(key, BackoffReason.DECISION_STOPPED)
                if key.subject is Subject.POD:
                    self._line.stop(key, spent, seconds)
            except NotLeader as error:
                logger.info("%s is left to the leader: %s", key, error)
                self._queue.add(key, self._clock())
            except GcuError as error:
                at_least = error.retry_after if isinstance(error, TooManyRequests) else 0.0
                seconds = self._back_off(key, BackoffReason.CALL_FAILED, at_least)
                self._reporter.failed(key, error, seconds)
            except Exception as error:
                logger.exception("the step for %s failed; it is repeated after a backoff", key)
                self._back_off(key, BackoffReason.FAULT)
                resource = RESOURCE_OF[key.subject]
                self._reporter.failed_by_fault(resource, self._cache.get(key), error)
                self._reconciler.remove_waiting(key)  # no node stays reserved for it
            else:
                self._queue.backoff.forget(key, BackoffReason.DECISION_STOPPED)
                if not self._dispatcher.has_command(key):
                    self._queue.backoff.forget(key, BackoffReason.CALL_FAILED, BackoffReason.FAULT)

    def _back_off(self, key: Key, reason: BackoffReason, at_least: float = 0.0) -> float:
        """Reconcile the key after its backoff; returns the seconds."""
        now = self._clock()
        seconds = max(self._queue.backoff.begin(key, reason, now), at_least)
        self._queue.add(key, now + seconds)
        return seconds
