"""The agent's metrics, for Prometheus. metric_specs.py describes them."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dra_driver.agent import card_metrics
from dra_driver.agent import metric_specs as specs
from dra_driver.agent.slices.device_layout import Devices, by_name, problem_taints
from dra_driver.agent.sources import CardSource, ContainersSource, DevicesSource, LedgerSource
from dra_driver.kube.events import Now
from dra_driver.model.claims.claim import Object, allocated_at
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.errors import GcuError, JournalError
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger

logger = logging.getLogger(__name__)


class AgentMetrics:
    """Metrics that are counted as things happen. `NodeCollector` reads the others on request."""

    def __init__(self, registry: CollectorRegistry, now: Now = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._durations = specs.REQUEST_SECONDS.register(registry)
        self._prepared = specs.PREPARED_SECONDS.register(registry)
        self._inflight = specs.REQUESTS_INFLIGHT.register(registry)
        self._errors = specs.CLAIM_ERRORS.register(registry)
        self._refusals = specs.ALLOCATE_ERRORS.register(registry)
        self._efsmi = specs.EFSMI_SECONDS.register(registry)
        self._quarantines = specs.JOURNAL_QUARANTINES.register(registry)
        self._publications = specs.PUBLICATIONS.register(registry)
        for outcome in ("written", "conflict", "failed"):
            self._publications.labels(outcome)
        for operation in ("prepare", "unprepare", "allocate"):
            self._durations.labels(operation)
            self._inflight.labels(operation)

    def efsmi_call(self, command: str, outcome: str, seconds: float) -> None:
        self._efsmi.labels(command, outcome).observe(seconds)

    def journal_quarantined(self) -> None:
        self._quarantines.inc()

    def publication(self, outcome: str) -> None:
        """`outcome` is written, conflict or failed."""
        self._publications.labels(outcome).inc()

    @contextmanager
    def claims(self, operation: str) -> Iterator[list[GcuError]]:
        """`dra_driver.kubelet_api.dra.service.ObserveCalls`."""
        errors: list[GcuError] = []
        with self._call(operation):
            yield errors
        for error in errors:
            self._errors.labels(operation, type(error).__name__).inc()

    def on_prepared(self, claim: Object) -> None:
        """`dra_driver.node.preparer.OnPrepared`."""
        if begun := allocated_at(claim):
            self._prepared.observe(max(0.0, (self._now() - begun).total_seconds()))

    @contextmanager
    def allocating(self, resource: str) -> Iterator[None]:
        """Around each Allocate of a resource."""
        with self._call("allocate"):
            try:
                yield
            except GcuError as error:
                self._refusals.labels(resource, type(error).__name__).inc()
                raise

    @contextmanager
    def _call(self, operation: str) -> Iterator[None]:
        inflight, durations = self._inflight.labels(operation), self._durations.labels(operation)
        with inflight.track_inprogress(), durations.time():
            yield


@dataclass(eq=False, kw_only=True)
class NodeCollector(Collector):
    """Reads at each request for metrics which cards and devices the node has, and which are in
    use. If the journal cannot be read, the metrics that need it are missing."""

    cards: CardSource
    devices: DevicesSource
    ledger: LedgerSource
    containers: ContainersSource

    def collect(self) -> Iterator[GaugeMetricFamily]:
        cards = (self.cards() or {}).values()
        yield card_metrics.about_cards(cards)
        yield from card_metrics.about_readings(cards)
        try:
            devices = self.devices()
            sizes = card_metrics.sizes_of(devices)
            yield _offered(devices)
            yield _tainted(devices)
            yield card_metrics.about_problems(devices)
            yield card_metrics.about_sizes(sizes)
            ledger = self.ledger()
        except JournalError as error:
            logger.warning("metrics are missing that the journal is needed for: %s", error)
            return
        yield _claims(ledger)
        yield _prepared(ledger)
        granted = card_metrics.granted(ledger, cards)
        yield card_metrics.about_allocations(granted, sizes)
        yield card_metrics.about_containers(granted, self.containers() if ledger.claims else ())
        yield card_metrics.about_largest_request(devices, ledger, sizes)


def _offered(devices: Devices) -> GaugeMetricFamily:
    health = {True: "unhealthy", False: "healthy"}
    return specs.DEVICES.samples(
        Tally(
            (mode.value, health[any(t["key"] == TAINT_UNHEALTHY for t in problem_taints(device))])
            for _, mode, device in by_name(devices)
        )
    )


def _tainted(devices: Devices) -> GaugeMetricFamily:
    return specs.DEVICE_TAINTS.samples(
        Tally(
            (taint["key"], taint.get("value", ""), taint["effect"])
            for device in devices
            for taint in problem_taints(device)
        )
    )


def _claims(ledger: Ledger) -> GaugeMetricFamily:
    counted = Tally(
        (held.state.value,)
        for held in ledger.claims.values()
        if not isinstance(held.owner, ContainerAllocation)
    )
    return specs.CLAIMS.samples({(state.value,): counted[state.value,] for state in ClaimState})


def _prepared(ledger: Ledger) -> GaugeMetricFamily:
    return specs.PREPARED_DEVICES.samples(
        Tally(
            (device.mode.value,)
            for held in ledger.claims.values()
            if held.state is ClaimState.PREPARE_COMPLETED
            for device in held.devices
        )
    )
