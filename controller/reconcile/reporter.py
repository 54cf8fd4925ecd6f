"""Tells people: events on the pod and on its claims, and metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.cache.keys import Key
from controller.queue.scheduling_queue import PARTS, SchedulingQueue
from controller.reconcile.warnings import allocated_by_other
from dra_driver.kube.events import EventType, Note, Recorder
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import Object
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

_ALLOCATION_FAILED = "GcuAllocationFailed"
_ALLOCATED_BY_OTHER = "GcuAllocatedByOther"
_FAULT = "GcuControllerFault"
_SECONDS = (0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)


class Reporter:
    """Never raises, never waits. What is only counted is counted in its metrics directly."""

    def __init__(self, recorder: Recorder, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        seconds = partial(Histogram, buckets=_SECONDS, registry=registry)
        self.allocations = counter("gcu_controller_allocations", "Claims allocated.")
        self.releases = counter("gcu_controller_releases", "Allocations taken back.")
        self.faults = counter(
            "gcu_controller_faults", "Events and steps that failed by a fault of the controller."
        )
        self.set_aside = gauge(
            "gcu_controller_set_aside_objects",
            "Objects that are set aside after a fault of the controller.",
        )
        self.waiting = gauge("gcu_controller_waiting_pods", "Pods that wait for devices.")
        self.steps = seconds(
            "gcu_controller_step_seconds", "How long a step of the deciding thread took.", ["kind"]
        )
        self._entries = gauge(
            "gcu_controller_queue_entries",
            "What the scheduling queue keeps, by its parts.",
            ["part"],
        )
        self.waits = seconds(
            "gcu_controller_decision_wait_seconds",
            "From when a pod was due for a decision until that was made.",
        )
        self._failures = counter(
            "gcu_controller_unsatisfied", "Decisions that found no devices for a waiting pod."
        )
        self._errors = counter("gcu_controller_errors", "Calls to the API server that failed.")
        self._foreign = gauge(
            "gcu_controller_foreign_allocations",
            "Claims that another allocator gave devices of this driver.",
        )
        self._stopped = counter(
            "gcu_controller_stopped_decisions",
            "Decisions that were stopped because they took too long, by what they were at.",
            ["at"],
        )
        self._recorder = recorder
        self._foreign_claims: set[Key] = set()

    def stopped(
        self, pod: Object, claims: Iterable[Object], spent: AllowanceSpent, again_in: float
    ) -> None:
        """The decision about the pod cost more than it may; it goes on in so many seconds."""
        self._stopped.labels(spent.where).inc()
        at, remedy = "in the search for devices", "ask for fewer alternatives and constraints"
        if spent.selector:
            at = f"at the selector {spent.selector[:200]!r}"
            remedy = "use fewer and simpler selectors"
        note = (
            f"the decision was stopped after {spent.limit}, {at}, so that other pods are served; "
            f"it goes on in {again_in:.1f} s. If this comes again and again, {remedy}"
        )
        logger.info("pod %s: %s", _name(pod), note)
        self.unsatisfied(pod, claims, note)

    def unsatisfied(self, pod: Object, claims: Iterable[Object], reason: Note) -> float:
        """A waiting pod's claims cannot be allocated; `reason` reaches pod and claims.

        Gives 0, or the seconds after which to call it again, because an event about the pod or a
        claim cannot be sent yet. The reason is built only if one can be.
        """
        self._failures.inc()
        if callable(reason):
            reason = cache(reason)
        if logger.isEnabledFor(logging.DEBUG):  # for people there is the event
            logger.debug("pod %s waits: %s", _name(pod), reason() if callable(reason) else reason)
        about = (_typed(pod, PODS), *(_typed(each, RESOURCE_CLAIMS) for each in claims))
        return max(self._warn(regarding, _ALLOCATION_FAILED, reason) for regarding in about)

    def foreign_allocation(self, key: Key, claim: Object | None) -> None:
        """Tell of the claim where another allocator gave it devices of ours."""
        note = allocated_by_other(claim) if claim is not None else None
        if claim is None or note is None:
            self._foreign_claims.discard(key)
        else:
            self._foreign_claims.add(key)
            logger.warning("claim %s: %s", _name(claim), note)
            self._warn(_typed(claim, RESOURCE_CLAIMS), _ALLOCATED_BY_OTHER, note)
        self._foreign.set(len(self._foreign_claims))

    def warn_pod(self, pod: Object, reason: str, note: str, action: str = "Allocate") -> None:
        self._warn(_typed(pod, PODS), reason, note, action)

    def failed(self, what: object, error: Exception, again_in: float) -> None:
        """A call failed; what it was for is tried again."""
        self._errors.inc()
        logger.warning("%s is tried again in %.1f s: %s", what, again_in, error)

    def failed_by_fault(self, resource: Resource, obj: Object | None, error: Exception) -> None:
        """The controller has failed on the object; the log has the stack trace."""
        self.faults.inc()
        if obj is None or not (obj.get("metadata") or {}).get("name"):
            return  # there is nothing that an event could be about
        note = (
            f"the controller failed on this {resource.kind} ({type(error).__name__}: {error}) and "
            "leaves it alone for a while; others are served. This is a fault of the "
            "controller: report it with the stack trace in its log"
        )
        self._warn(_typed(obj, resource), _FAULT, note)

    def observe(self, queue: SchedulingQueue) -> None:
        """From now on a scrape tells how long the queue is."""
        self.waiting.set_function(queue.waiting)
        for part in PARTS:
            self._entries.labels(part).set_function(partial(queue.entries, part))

    def _warn(self, regarding: Object, reason: str, note: Note, action: str = "Allocate") -> float:
        """Gives what `EventRecorder.record` does."""
        return self._recorder.record(
            regarding, kind=EventType.WARNING, reason=reason, note=note, action=action
        )


def _typed(obj: Object, resource: Resource) -> Object:
    """Lists of an API server leave out apiVersion and kind, which an event needs."""
    return {"apiVersion": resource.api_version, "kind": resource.kind} | obj


def _name(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
