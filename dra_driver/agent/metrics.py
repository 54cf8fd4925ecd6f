"""The agent's metrics, for Prometheus. metric_specs.py describes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from dra_driver.agent import metric_specs as specs
from dra_driver.kube.events import Now
from dra_driver.model.claims.claim import Object, allocated_at
from dra_driver.model.errors import GcuError


class AgentMetrics:
    """Metrics that are counted as things happen; `NodeCollector` reads the others on request."""

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
