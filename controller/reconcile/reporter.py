"""Events on pods and claims, and the metrics of the controller."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sized
from functools import cache, partial
from typing import Final

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.allocator.inventory import Inventory
from controller.allocator.ownership import serves_class
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.claims import foreign_devices, writers_of_allocation
from controller.cache.keys import Key, full_name
from controller.filter.usage import differs
from controller.queue.backoff import BackoffReason
from controller.queue.scheduling_queue import PARTS, SchedulingQueue
from dra_driver.kube.events import EventType, Note, Recorder
from dra_driver.kube.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, reserved_for, results
from dra_driver.model.names import CLASS_LIMIT_PREFIX, DRIVER
from dra_driver.selector.allowance import AllowanceSpent

logger = logging.getLogger(__name__)

_ALLOCATION_FAILED = "GcuAllocationFailed"
_ALLOCATED_BY_OTHER = "GcuAllocatedByOther"
_ALLOCATION_RELEASED = "GcuAllocationReleased"
_ALLOCATED_TWICE = "GcuAllocatedTwice"
_FAULT = "GcuControllerFault"
_RELEASE = "Release"  # an event's action


class Reporter:
    """Never raises, never waits. Public attributes are metrics that their users count in."""

    def __init__(self, recorder: Recorder, registry: CollectorRegistry) -> None:
        self.allocations = specs.ALLOCATIONS.register(registry)
        self.allocation_seconds = specs.ALLOCATION_SECONDS.register(registry)
        self.running_seconds = specs.RUNNING_SECONDS.register(registry)
        self.releases = specs.RELEASES.register(registry)
        self.faults = specs.FAULTS.register(registry)
        self.steps = specs.STEP_SECONDS.register(registry)
        self.waits = specs.DECISION_WAIT_SECONDS.register(registry)
        self._faulty = specs.FAULTY_OBJECTS.register(registry)
        self._waiting = specs.WAITING_PODS.register(registry)
        self._longest_wait = specs.LONGEST_WAIT.register(registry)
        self._entries = specs.QUEUE_ENTRIES.register(registry)
        self._failures = specs.UNSATISFIED.register(registry)
        self._errors = specs.ERRORS.register(registry)
        self._foreign = specs.FOREIGN_ALLOCATIONS.register(registry)
        self._conflicting = specs.CONFLICTING_ALLOCATIONS.register(registry)
        self._stopped = specs.STOPPED_DECISIONS.register(registry)
        self._recorder = recorder
        self._foreign_claims: set[Key] = set()
        self._conflicting_claims: set[Key] = set()

    def stopped(
        self, pod: Object, claims: Iterable[Object], spent: AllowanceSpent, again_in: float
    ) -> None:
        """The decision about the pod cost more than its allowance; it goes on in `again_in` s."""
        self._stopped.labels(spent.where).inc()
        at, remedy = "in the search for devices", "ask for fewer alternatives and constraints"
        if spent.selector:
            at = f"at the selector {spent.selector[:200]!r}"
            remedy = "use fewer and simpler selectors"
        note = (
            f"the decision was stopped after {spent.limit}, {at}, so that other pods are served; "
            f"it goes on in {again_in:.1f} s. If this comes again and again, {remedy}"
        )
        logger.info("pod %s: %s", full_name(pod), note)
        self.unsatisfied(pod, claims, note)

    def unsatisfied(self, pod: Object, claims: Iterable[Object], reason: Note) -> float:
        """The claims of a waiting pod cannot be allocated: an event about the pod and each claim.

        Returns 0; or, if an event cannot be sent yet, the seconds after which to call this again.
        A `reason` that is a function is called only if an event can be sent.
        """
        self._failures.inc()
        if callable(reason):
            reason = cache(reason)
        if logger.isEnabledFor(logging.DEBUG):  # people read the event
            why = reason() if callable(reason) else reason
            logger.debug("pod %s waits: %s", full_name(pod), why)
        about = (_typed(pod, PODS), *(_typed(each, RESOURCE_CLAIMS) for each in claims))
        return max(self._warn(regarding, _ALLOCATION_FAILED, reason) for regarding in about)

    def group_waits(self, group: Object, reason: str) -> float:
        """An event about the PodGroup. Returns as `unsatisfied`."""
        if not group:
            return 0.0
        return self._warn(_typed(group, POD_GROUPS), _ALLOCATION_FAILED, reason)

    def clear(self) -> None:
        """Another replica leads, and reports claims."""
        self._foreign_claims.clear()
        self._conflicting_claims.clear()
        self._foreign.set(0)
        self._conflicting.set(0)

    def foreign_allocation(self, key: Key, claim: Object | None, inventory: Inventory) -> None:
        """Report devices of ours that another allocator gave to the claim."""
        note = allocated_by_other(claim, inventory) if claim is not None else None
        if claim is None or note is None:
            self._foreign_claims.discard(key)
        else:
            self._foreign_claims.add(key)
            logger.warning("claim %s: %s", full_name(claim), note)
            self._warn(_typed(claim, RESOURCE_CLAIMS), _ALLOCATED_BY_OTHER, note)
        self._foreign.set(len(self._foreign_claims))

    def allocated_twice(
        self, key: Key, claim: Object | None, conflict: str | None
    ) -> tuple[Key, ...]:
        """Report the `conflict` of the claim's allocation with others; empty if there is none.
        Returns the claims that may have no conflict any more, because this one has none."""
        before = len(self._conflicting_claims)
        if claim is None or not conflict:
            self._conflicting_claims.discard(key)
        else:
            self._conflicting_claims.add(key)
            note = f"{conflict}. Delete this claim and its pod"
            logger.warning("claim %s: %s", full_name(claim), note)
            self._warn(_typed(claim, RESOURCE_CLAIMS), _ALLOCATED_TWICE, note)
        self._conflicting.set(len(self._conflicting_claims))
        has_ended = len(self._conflicting_claims) < before
        return tuple(self._conflicting_claims) if has_ended else ()

    def released(self, pod: Object | None, claims: Iterable[Object], note: str) -> None:
        """The allocations of the claims were released, as the pod was not bound with them."""
        if pod is not None:
            self._warn(_typed(pod, PODS), _ALLOCATION_RELEASED, note, _RELEASE)
        for claim in claims:
            self._warn(_typed(claim, RESOURCE_CLAIMS), _ALLOCATION_RELEASED, note, _RELEASE)

    def warn_pod(self, pod: Object, reason: str, note: str, action: str = "Allocate") -> None:
        self._warn(_typed(pod, PODS), reason, note, action)

    def failed(self, what: object, error: Exception, again_in: float) -> None:
        """A call for `what` failed, and `what` is tried again in `again_in` seconds."""
        self._errors.inc()
        logger.warning("%s is tried again in %.1f s: %s", what, again_in, error)

    def failed_by_fault(self, resource: Resource, obj: Object | None, error: Exception) -> None:
        """The controller failed on the object; the log has the stack trace."""
        self.faults.inc()
        if obj is None or not (obj.get("metadata") or {}).get("name"):
            return  # an event needs an object
        note = (
            f"the controller failed on this {resource.kind} ({type(error).__name__}: {error}) and "
            "leaves it alone for a while; others are served. This is a fault of the "
            "controller: report it with the stack trace in its log"
        )
        self._warn(_typed(obj, resource), _FAULT, note)

    def observe(self, queue: SchedulingQueue, faults: Sized) -> None:
        """Each scrape of the metrics reads how long the queue is, and how many objects are
        faulty: `faults` by their events, others by their steps."""
        self._faulty.set_function(lambda: len(faults) + queue.backoff.count(BackoffReason.FAULT))
        self._waiting.set_function(queue.waiting_pods)
        self._longest_wait.set_function(queue.longest_wait)
        for part in PARTS:
            self._entries.labels(part).set_function(partial(queue.entries, part))

    def _warn(self, regarding: Object, reason: str, note: Note, action: str = "Allocate") -> float:
        """Returns what `EventRecorder.record` returns."""
        return self._recorder.record(
            regarding, kind=EventType.WARNING, reason=reason, note=note, action=action
        )


def _typed(obj: Object, resource: Resource) -> Object:
    """Lists of an API server leave out apiVersion and kind, which an event needs."""
    return {"apiVersion": resource.api_version, "kind": resource.kind} | obj


USAGE_DIFFERS: Final = "GcuUsageDiffers"
LIMIT_NOT_SERVED: Final = "GcuLimitNotServed"
CLAIM_TOO_OLD: Final = "GcuClaimTooOld"


def warnings_about(
    pod: Object, ours: Mapping[str, Object], cache: ClusterCache
) -> Iterator[tuple[str, str]]:
    """Reasons and notes of events about a pod that waits for kube-scheduler. Its claims `ours`, by
    their names in the pod, are all allocated."""
    if note := _usage_differs(pod, ours, cache):
        yield USAGE_DIFFERS, note
    if note := _limit_not_served(pod, cache.state()):
        yield LIMIT_NOT_SERVED, note
    if note := _claim_too_old(pod, ours):
        yield CLAIM_TOO_OLD, note


def allocated_by_other(claim: Object, inventory: Inventory) -> str | None:
    """The note of an event about devices of ours that another allocator gave to the claim.

    A taint keeps kube-scheduler from our devices, but a person's class or claim may tolerate it.
    Such devices count as used. The event warns, because two allocators that do not know of each
    other can give one card twice.
    """
    devices = foreign_devices(claim, inventory)
    if not devices:
        return None
    writer = ", ".join(writers_of_allocation(claim)) or "an unknown writer"
    return (
        f"{', '.join(devices)} was allocated by {writer}, past the controller "
        "of this driver, which counts it as used; it may be allocated twice. Remove whatever "
        "tolerates the taint gcu.enflame.com/allocated-by, and delete the claim"
    )


def _usage_differs(pod: Object, ours: Mapping[str, Object], cache: ClusterCache) -> str | None:
    for claim in ours.values():
        # The claim was prepared for the first bound pod that reserved it.
        user = next((pod for pod in cache.reserving(claim) if pods.node_name(pod)), None)
        if user is not None:
            claims = cache.claims_of(user) or {}
            theirs = {name: each for name, each in claims.items() if results(each)}
            if note := differs(pod, ours, user, theirs):
                return note
    return None


def _limit_not_served(pod: Object, state: State) -> str | None:
    """Kubernetes 1.36 and newer accept the limit ``deviceclass.resource.kubernetes.io/CLASS: n``
    for n devices of the class. Until the pod is bound its claim is only in the memory of
    kube-scheduler, so that no other allocator can allocate it."""
    for device_class in pods.limited_classes(pod):
        if serves_class(device_class, state):
            return (
                f"the limit {CLASS_LIMIT_PREFIX}{device_class} is not served: the devices of "
                f"{DRIVER} are allocated to ResourceClaims alone. Use a ResourceClaim of the "
                f"DeviceClass {device_class}, or turn on legacyResources of the chart in this "
                "namespace, and create the pod again"
            )
    return None


def _claim_too_old(pod: Object, ours: Mapping[str, Object]) -> str | None:
    """A claim that nobody has reserved is released and allocated anew."""
    message = pods.failed_reservation(pod)
    for claim in ours.values():
        if reserved_for(claim) and f"claim {full_name(claim)}:" in message:
            return (
                f"claim {full_name(claim)} was allocated before Kubernetes 1.36, and "
                "kube-scheduler cannot reserve it for one more pod. The pod starts when the pods "
                "that use the claim have ended; or give the pod a claim of its own"
            )
    return None
