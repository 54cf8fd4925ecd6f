"""The controller as one thing: wired from its ports, started, stopped."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from controller.cache.cache import WATCHED
from controller.informers.decoders import decoders
from controller.leaderelection.fence import Fence
from controller.leaderelection.leader import LeaderElector, LeaseTimes
from controller.queue.event_queue import EventQueue, ResourceEventHandler
from controller.settings import ControllerSettings
from controller.wiring import Ports, wire
from dra_driver.kube.api import Api
from dra_driver.kube.decode import Decoder
from dra_driver.kube.event_filter import EventLimits
from dra_driver.kube.events import EventRecorder
from dra_driver.kube.optional_watch import OptionalReflector
from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.kube.watch import Reflector
from dra_driver.model.names import DRIVER, LABEL_MADE_FOR_LIMITS
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors
from dra_driver.telemetry.program import Deadline

# Why a pod waits changes with every card that comes or goes.
_EVENT_LIMITS = EventLimits(burst=1, spacing=30.0)
# Of claim templates only our own are our business.
_LABELS = {RESOURCE_CLAIM_TEMPLATES: f"{LABEL_MADE_FOR_LIMITS}=true"}
# The server leaves out the slices of other drivers, which may be many.
_FIELDS = {RESOURCE_SLICES: f"spec.driver={DRIVER}"}
# Seconds. A decision is stopped after one, but the first reads all slices: ten for 15,000 nodes.
_LONGEST_STEP = 120.0
_END = 10.0  # seconds to stop, and for writes that are under way


def _now() -> datetime:
    return datetime.now(UTC)


class Controller:
    """Constructing has no effects. `api` must write as the field manager `release.MANAGER`."""

    def __init__(
        self,
        settings: ControllerSettings,
        api: Api,
        registry: CollectorRegistry,
        *,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._fence = Fence()
        self._events = EventQueue(clock)
        self._recorder = EventRecorder(
            api,
            controller=f"{DRIVER}/controller",
            instance=identity,
            limits=_EVENT_LIMITS,
            clock=clock,
            now=now,
        )
        executor = ThreadPoolExecutor(settings.writes_in_flight, thread_name_prefix="writes")
        self._worker, context = wire(
            settings,
            Ports(api, self._recorder, executor, clock, now, draw=random.random),
            registry,
            events=self._events,
            fence=self._fence,
            selectors=Selectors(Allowance(clock)),
        )
        self._dispatcher = context.dispatcher
        self._elector = LeaderElector(
            api,
            self._fence,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=identity,
            times=LeaseTimes(
                settings.lease_duration, settings.lease_renew_deadline, settings.lease_retry
            ),
            on_leading=self._events.wake,
            now=now,
        )
        known = decoders()
        self._reflectors = [self._reflector(api, each, known[each]) for each in WATCHED]

    def _reflector(self, api: Api, resource: Resource, decoder: Decoder) -> Reflector:
        handler = ResourceEventHandler(self._events, resource)
        if resource is DEVICE_TAINT_RULES:
            versions = (DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2)
            return OptionalReflector(api, versions, handler, decoder=decoder)
        labels, fields = _LABELS.get(resource, ""), _FIELDS.get(resource, "")
        return Reflector(
            api,
            resource,
            handler,
            label_selector=labels,
            field_selector=fields,
            decoder=decoder,
            streamed=True,
        )

    def start(self) -> None:
        """Start all threads; returns at once."""
        self._recorder.start()
        self._worker.start()
        for reflector in self._reflectors:
            reflector.start()
        self._elector.start()

    def stop(self, within: float = _END) -> None:
        """Finish what is being written, then give the lease back, in all within so many seconds.

        Where a write has not ended by then the lease is left to expire, so that nobody follows
        while that write may still arrive."""
        deadline = Deadline(within)
        self._worker.stop(deadline.left())
        written = self._dispatcher.stop(deadline.left())
        self._elector.stop(deadline.left(), give_back=written)
        for reflector in self._reflectors:
            reflector.stop(deadline.left())
        self._recorder.stop(deadline.left())

    def ready(self) -> str | None:
        """None once everything was listed; a replica that does not lead is ready too."""
        return None if self._worker.is_synced() else "the first lists are not complete"

    def live(self) -> str | None:
        """Which thread ended or hangs, which only a fault of ours can cause."""
        if not self._worker.is_alive():
            return "the worker ended"
        lasting = self._worker.lasting()
        if lasting > _LONGEST_STEP:
            return f"a step of the worker has lasted {lasting:.0f} s"
        if not self._elector.is_alive():
            return "the leader election ended"
        if not all(reflector.is_alive() for reflector in self._reflectors):
            return "a watch ended"
        if not self._recorder.is_alive():
            return "the writer of events ended"
        return None
