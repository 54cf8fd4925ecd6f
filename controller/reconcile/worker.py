"""The one thread that decides: events in, then the keys that fall due, one after the other.

An object or key with which this fails is set aside (`Steps`): no fault ends the thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from controller.cache.cache import WATCHED, Changed
from controller.cache.keys import Key, Subject
from controller.cache.pods import key_of
from controller.leaderelection.fence import Fence, NotLeader
from controller.queue.backoff import Cause
from controller.queue.event_queue import Event, EventQueue, Replaced, ResourceEvent
from controller.queue.scheduling_queue import Due
from controller.reconcile.context import Context
from controller.reconcile.event_handlers import EventHandlers
from controller.reconcile.fence_previous_leader import PreviousLeaderFence
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.steps import Steps
from controller.write.commands import WriteAllocation, WriteDone
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
    """Follows the cluster always, and acts only while the fence is open and every kind of object
    was listed once. Idle, it waits without a request."""

    def __init__(
        self,
        context: Context,
        *,
        events: EventQueue,
        reconciler: Reconciler,
        previous_leader: PreviousLeaderFence,
        fence: Fence,
        steps: Steps,
        draw: Callable[[], float],
    ) -> None:
        super().__init__("worker", interrupt=events.wake)
        self._events = events
        self._cache = context.cache
        self._queue = context.queue
        self._dispatcher = context.dispatcher
        self._reporter = context.reporter
        self._clock = context.clock
        self._handlers = EventHandlers(context)
        self._reconciler = reconciler
        self._previous_leader = previous_leader
        self._fence = fence
        self._steps = steps
        self._listed: set[Resource] = set()
        self._takeover_backoff = Backoff(first=0.1, draw=draw)
        self._takeover_at = 0.0
        self._is_planning = False
        self._pause = Backoff(first=0.1, longest=5.0, draw=draw)

    def is_synced(self) -> bool:
        """Whether every kind of object was listed once."""
        return len(self._listed) == len(WATCHED)

    def lasting(self) -> float:
        """For how many seconds the present step has lasted; safe for any thread."""
        return self._steps.lasting()

    def run(self) -> None:
        """The thread's work; returns after `stop`."""
        while not self._stopped.is_set():
            try:
                self.run_once(self.next_wakeup())
            except Exception:
                logger.exception("the deciding thread goes on after a fault")
                self._reporter.faults.inc()
                self._wait(self._pause.next())
            else:
                self._pause.reset()

    def run_once(self, timeout: float | None) -> None:
        """Handle the events, waiting for them up to `timeout` seconds, and reconcile one key."""
        for event in self._events.take(timeout):
            self.handle_event(event)
        if not self._may_act():
            self._stop_planning()
            return
        if not self._previous_leader.is_complete():
            self._take_over()
            return
        if not self._is_planning:
            self._plan_everything()
        if not self._dispatcher.has_room():
            return
        now = self._clock()
        self._queue.wake_up(now)
        due = self._queue.pop(now)
        if due is not None:
            self._reconcile(due)

    def next_wakeup(self) -> float | None:
        """Seconds until there is something to do without an event; None if only events help."""
        if not self._may_act():
            return None  # winning the lease wakes the event queue
        if not self._previous_leader.is_complete():
            due: float | None = self._takeover_at
        elif not self._is_planning:
            return 0.0
        elif not self._dispatcher.has_room():
            return None  # an answer is an event
        else:
            due = self._queue.next_wakeup()
        return None if due is None else max(0.0, due - self._clock())

    def _may_act(self) -> bool:
        return self.is_synced() and self._fence.is_open()

    def _stop_planning(self) -> None:
        """A follower plans nothing: in weeks that would be more and more."""
        self._queue.clear()
        self._is_planning = False

    def _plan_everything(self) -> None:
        self._is_planning = True
        for found in self._cache.everything():
            with self._steps.isolate(found.resource, found.new or {}):
                self._follow(found)

    def _reconcile(self, due: Due) -> None:
        key = due.key
        with self._attempt(key, str(key.subject)):
            self._reconciler.reconcile(key)
        if key.subject is Subject.POD:
            self._reporter.waits.observe(self._clock() - due.since)

    def handle_event(self, event: Event) -> None:
        if isinstance(event, WriteDone):
            self._dispatcher.finish(event.command)
            with self._attempt(event.command.key, "written"):
                for changed in self._answered(event):
                    self._follow(changed)
                self._reconciler.on_answer(event)
            return
        for changed in self._changes(event):
            with self._steps.isolate(changed.resource, changed.new or changed.old or {}):
                self._follow(changed)

    def _follow(self, changed: Changed) -> None:
        """Plan what the change makes worth looking at."""
        now = self._clock()
        came = min(now, self._events.since)
        if changed.resource is PODS and changed.old is not None and changed.is_gone():
            self._reconciler.leave_line(key_of(changed.old))
            self._queue.backoff.forget(key_of(changed.old), *Cause)
        for key in self._handlers.of(changed, now):
            self._queue.add(key, came)

    def _changes(self, event: Replaced | ResourceEvent) -> Iterable[Changed]:
        if isinstance(event, Replaced):
            self._steps.begin_list(event.resource)
            self._listed.add(event.resource)
            with no_collection():
                return self._cache.replace(event.resource, event.items)
        changed = self._cache.apply(event.resource, event.change, event.object)
        return () if changed is None else (changed,)

    def _answered(self, done: WriteDone) -> Iterator[Changed]:
        """What the server has answered is an event like those of the watches."""
        command, answer = done.command, done.answer
        found = [(RESOURCE_CLAIMS, Change.MODIFIED, each) for each in answer.claims]
        if answer.pod is not None:
            found.append((PODS, Change.MODIFIED, answer.pod))
        elif answer.pod_changed and isinstance(command, WriteAllocation):
            found.append((PODS, Change.DELETED, command.pod))
        for each in found:
            changed = self._cache.apply(*each)
            if changed is not None:
                yield changed

    def _take_over(self) -> None:
        if self._clock() < self._takeover_at:
            return
        try:
            self._previous_leader.fence_previous_leader()
        except NotLeader as error:
            logger.info("the term ended before it began: %s", error)
        except GcuError as error:
            self._take_over_later(error)
        except Exception as error:
            logger.exception("the term cannot begin after a fault")
            self._reporter.faults.inc()
            self._take_over_later(error)
        else:
            self._takeover_backoff.reset()

    def _take_over_later(self, error: Exception) -> None:
        delay = self._takeover_backoff.next()
        self._takeover_at = self._clock() + delay
        self._reporter.failed("the beginning of the term", error, delay)

    @contextmanager
    def _attempt(self, key: Key, kind: str) -> Iterator[None]:
        """Whatever is raised in here ends, and the key is tried again later."""
        with new_call(str(key)):
            try:
                with self._steps.step(kind, key.namespace):
                    yield
            except AllowanceSpent as spent:
                self._stop(key, spent)
            except NotLeader as error:
                logger.info("%s is left to the leader: %s", key, error)
                self._queue.add(key, self._clock())
            except GcuError as error:
                self._fail(key, error)
            except Exception as error:
                logger.exception("%s is set aside for a while", key)
                self._set_aside(key, error)
            else:
                self._queue.backoff.forget(key, Cause.STOPPED)
                if not self._dispatcher.is_pending(key):
                    self._queue.backoff.forget(key, Cause.CALL_FAILED, Cause.FAULT)
                    self._steps.succeeded(key)

    def _fail(self, key: Key, error: GcuError) -> None:
        at_least = error.retry_after if isinstance(error, TooManyRequests) else 0.0
        self._reporter.failed(key, error, self._retry(key, Cause.CALL_FAILED, at_least))

    def _stop(self, key: Key, spent: AllowanceSpent) -> None:
        """What was found out until now is known when it goes on."""
        pause = self._retry(key, Cause.STOPPED)
        if key.subject is Subject.POD:
            self._reconciler.stopped(key, spent, pause)

    def _set_aside(self, key: Key, error: Exception) -> None:
        """It keeps nothing from others meanwhile."""
        self._retry(key, Cause.FAULT)
        self._steps.failed(key, self._cache.get(key), error)
        self._reconciler.leave_line(key)

    def _retry(self, key: Key, cause: Cause, at_least: float = 0.0) -> float:
        """Gives in how many seconds."""
        now = self._clock()
        pause = max(self._queue.backoff.begin(key, cause, now), at_least)
        self._queue.add(key, now + pause)
        return pause
