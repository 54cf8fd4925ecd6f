"""Tells people: events on the pod and on its claims, and metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from controller.rules.bypass import written_past_us
from controller.work.agenda import Key
from dra_driver.kube.events import EventType, Recorder
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)

_REASON_FAILED = "GcuAllocationFailed"
_REASON_USAGE = "GcuUsageDiffers"
_REASON_FULL = "GcuClaimFull"
_REASON_TEMPLATE = "GcuTemplateMissing"
_REASON_PAST_US = "GcuAllocatedByOther"


class Narrator:
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
        self._waiting = Gauge(
            "gcu_controller_waiting_pods", "Pods that wait for devices.", registry=registry
        )

    def unsatisfied(self, pod: Object, claims: Iterable[Object], reason: str) -> float:
        """A waiting pod's claims cannot be allocated; `reason` reaches pod and claims.

        Gives 0, or the seconds after which it is worth telling again, because the pod or a claim
        was told something else a moment ago: counts change with every card that comes or goes.
        """
        self._failures.inc()
        # Every freed device makes all that wait look again: people read the event.
        logger.debug("pod %s waits: %s", _name(pod), reason)
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

    def waiting(self, count: int) -> None:
        self._waiting.set(count)

    def _warn(self, regarding: Object, reason: str, told: str, action: str = "Allocate") -> float:
        """Gives what the recorder does: after how many seconds it is worth telling again."""
        return self._recorder.record(
            regarding, kind=EventType.WARNING, reason=reason, note=told, action=action
        )


def _typed(obj: Object, resource: Resource) -> Object:
    """Lists of an API server leave out apiVersion and kind, which an event needs."""
    return {"apiVersion": resource.api_version, "kind": resource.kind} | obj


def _name(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
