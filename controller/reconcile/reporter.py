"""Tells people: events on the pod and on its claims, and metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.cache.keys import Key
from controller.reconcile.foreign_allocations import written_past_us
from dra_driver.kube.events import EventType, Note, Recorder
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import Object
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

_REASON_FAILED = "GcuAllocationFailed"
_REASON_USAGE = "GcuUsageDiffers"
_REASON_FULL = "GcuClaimFull"
_REASON_TEMPLATE = "GcuTemplateMissing"
_REASON_LIMIT = "GcuLimitNotServed"
_REASON_PAST_US = "GcuAllocatedByOther"
_REASON_FAULT = "GcuControllerFault"
_SECONDS = (0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)


class Reporter:
    """Never raises, never waits."""

    def __init__(self, recorder: Recorder, registry: CollectorRegistry) -> None:
        self._recorder = recorder
        self._allocations = Counter(
            "gcu_controller_allocations", "Claims allocated.", registry=registry
        )
        self._releases = Counter(
            "gcu_controller_releases", "Allocations taken back.", registry=registry
        )
        self._failures = Counter(
            "gcu_controller_unsatisfied",
            "Decisions that found no devices for a waiting pod.",
            registry=registry,
        )
        self._errors = Counter(
            "gcu_controller_errors", "Calls to the API server that failed.", registry=registry
        )
        self._past_us: set[Key] = set()
        self._foreign = Gauge(
            "gcu_controller_foreign_allocations",
            "Claims that another allocator gave devices of this driver.",
            registry=registry,
        )
        self._faults = Counter(
            "gcu_controller_faults",
            "Events and steps that failed by a fault of the controller.",
            registry=registry,
        )
        self._set_aside = Gauge(
            "gcu_controller_set_aside_objects",
            "Objects that are set aside after a fault of the controller.",
            registry=registry,
        )
        self._waiting = Gauge(
            "gcu_controller_waiting_pods", "Pods that wait for devices.", registry=registry
        )

        self._stopped = Counter(
            "gcu_controller_stopped_decisions",
            "Decisions that were stopped because they took too long, by what they were at.",
            ["at"],
            registry=registry,
        )
        self._steps = Histogram(
            "gcu_controller_step_seconds",
            "How long a step of the deciding thread took.",
            ["kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._waits = Histogram(
            "gcu_controller_decision_wait_seconds",
            "From when a pod was due for a decision until that was made.",
            buckets=_SECONDS,
            registry=registry,
        )

    def step(self, kind: str, seconds: float) -> None:
        """A step of the deciding thread took so long."""
        self._steps.labels(kind).observe(seconds)

    def decided(self, waited: float) -> None:
        """A pod's decision was made so long after the pod was due."""
        self._waits.observe(waited)

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
        return max(self._warn(regarding, _REASON_FAILED, reason) for regarding in about)

    def written_past_us(self, key: Key, claim: Object | None) -> None:
        """Tell of the claim where another allocator gave it devices of ours."""
        told = written_past_us(claim) if claim is not None else None
        if claim is None or told is None:
            self._past_us.discard(key)
        else:
            self._past_us.add(key)
            logger.warning("claim %s: %s", _name(claim), told)
            self._warn(_typed(claim, RESOURCE_CLAIMS), _REASON_PAST_US, told)
        self._foreign.set(len(self._past_us))

    def usage_differs(self, pod: Object, told: str) -> None:
        """A pod uses a prepared claim otherwise than the pod that it was prepared for."""
        self._warn(_typed(pod, PODS), _REASON_USAGE, told)

    def claim_full(self, pod: Object, told: str) -> None:
        """A claim of the pod is reserved for as many pods as it can be."""
        self._warn(_typed(pod, PODS), _REASON_FULL, told)

    def no_template(self, pod: Object, told: str) -> None:
        """The claim template that the pod's limits became is not the one that it should be."""
        self._warn(_typed(pod, PODS), _REASON_TEMPLATE, told, action="MakeTemplate")

    def limit_unserved(self, pod: Object, problem: str) -> None:
        """A waiting pod asks for our devices by a limit that this controller cannot serve."""
        self._warn(_typed(pod, PODS), _REASON_LIMIT, problem)

    def allocated(self, count: int) -> None:
        self._allocations.inc(count)

    def released(self) -> None:
        self._releases.inc()

    def failed(self, key: Key, error: Exception, again_in: float) -> None:
        """A call failed; the key comes up again."""
        self._errors.inc()
        logger.warning("%s is looked at again in %.1f s: %s", key, again_in, error)

    def takeover_failed(self, error: Exception, again_in: float) -> None:
        """A call of the new leader failed, before its first grant."""
        self._errors.inc()
        logger.warning("this leader's term begins later, in %.1f s: %s", again_in, error)

    def fault(self) -> None:
        """Something failed by a fault of the controller; the log has the stack trace."""
        self._faults.inc()

    def set_aside(
        self, count: int, resource: Resource, obj: Object | None, error: Exception
    ) -> None:
        """As `fault`, and `obj` is one of `count` objects that are set aside now."""
        self.fault()
        self._set_aside.set(count)
        if obj is None or not (obj.get("metadata") or {}).get("name"):
            return  # there is nothing that an event could be about
        note = (
            f"the controller failed on this {resource.kind} ({type(error).__name__}: {error}) and "
            "leaves it alone for a while; others are served. This is a fault of the "
            "controller: report it with the stack trace in its log"
        )
        self._warn(_typed(obj, resource), _REASON_FAULT, note)

    def set_aside_now(self, count: int) -> None:
        """So many objects are set aside."""
        self._set_aside.set(count)

    def waiting(self, count: int) -> None:
        self._waiting.set(count)

    def _warn(self, regarding: Object, reason: str, told: Note, action: str = "Allocate") -> float:
        """Gives what `EventRecorder.record` does."""
        return self._recorder.record(
            regarding, kind=EventType.WARNING, reason=reason, note=told, action=action
        )


def _typed(obj: Object, resource: Resource) -> Object:
    """Lists of an API server leave out apiVersion and kind, which an event needs."""
    return {"apiVersion": resource.api_version, "kind": resource.kind} | obj


def _name(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
