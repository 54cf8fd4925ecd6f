"""The agent's metrics, for Prometheus; docs/user/health.md lists them."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dra_driver.agent.slices.device_layout import Devices
from dra_driver.agent.sources import DevicesSource, LedgerSource
from dra_driver.kubelet_api.device_plugin.handler import ContainerEdits, DeviceHandler
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.errors import GcuError, InvalidValue, JournalError
from dra_driver.model.names import TAINT_ALLOCATED_BY, TAINT_UNHEALTHY
from dra_driver.node.checkpoint.ledger import Ledger, State

logger = logging.getLogger(__name__)

# A prepare without the hardware takes a millisecond, one that makes an instance a second; the
# kubelet gives up after 45 s.
_CLAIM_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 45)
_TOOL_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60, 300)


class Metrics:
    """Metrics that are counted as things happen. `NodeCollector` reads the others on request."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "gcu_agent_request_duration_seconds",
            "Time that calls of the kubelet took: prepare and unprepare, or Allocate.",
            ["operation"],
            buckets=_CLAIM_SECONDS,
            registry=registry,
        )
        self._inflight = Gauge(
            "gcu_agent_requests_inflight",
            "Calls of the kubelet that are not answered yet.",
            ["operation"],
            registry=registry,
        )
        self._errors = Counter(
            "gcu_agent_claim_errors",
            "Claims whose prepare or unprepare failed, by the class of the error.",
            ["operation", "error"],
            registry=registry,
        )
        self._refusals = Counter(
            "gcu_agent_allocate_errors",
            "Containers whose Allocate failed, by resource and the class of the error.",
            ["resource", "error"],
            registry=registry,
        )
        self._efsmi = Histogram(
            "gcu_agent_efsmi_duration_seconds",
            "Time that calls of efsmi took, by command and outcome.",
            ["command", "outcome"],
            buckets=_TOOL_SECONDS,
            registry=registry,
        )
        self._quarantines = Counter(
            "gcu_agent_journal_quarantines",
            "Damaged journals that were moved aside and rebuilt.",
            registry=registry,
        )
        self._publications = Counter(
            "gcu_agent_publications",
            "Attempts to update the ResourceSlices that wrote something or failed.",
            ["outcome"],
            registry=registry,
        )
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

    def on_begin(self, operation: str) -> None:
        """`dra_driver.kubelet_api.dra.claim_service.CallObserver`."""
        self._inflight.labels(operation).inc()

    def on_end(self, operation: str, seconds: float, errors: Sequence[GcuError]) -> None:
        self._inflight.labels(operation).dec()
        self._durations.labels(operation).observe(seconds)
        for error in errors:
            self._errors.labels(operation, type(error).__name__).inc()

    def timed_devices(self, resource: str, handler: DeviceHandler) -> DeviceHandler:
        """The handler of a resource, with each Allocate measured."""
        return _TimedDevices(
            resource,
            handler,
            self._durations.labels("allocate"),
            self._inflight.labels("allocate"),
            self._refusals,
        )


class _TimedDevices:
    def __init__(
        self,
        resource: str,
        handler: DeviceHandler,
        durations: Histogram,
        inflight: Gauge,
        refusals: Counter,
    ) -> None:
        self._resource = resource
        self.devices = handler.devices
        self.prefer = handler.prefer
        self._handler = handler
        self._durations = durations
        self._inflight = inflight
        self._refusals = refusals

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        with self._inflight.track_inprogress(), self._durations.time():
            try:
                return self._handler.allocate(ids)
            except GcuError as error:
                self._refusals.labels(self._resource, type(error).__name__).inc()
                raise


class NodeCollector(Collector):
    """Reads at each request for metrics which devices the node offers, and which are in use."""

    def __init__(self, *, devices: DevicesSource, ledger: LedgerSource) -> None:
        """If one raises JournalError, the metrics that need it are missing."""
        self._devices = devices
        self._ledger = ledger

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            devices = self._devices()
        except JournalError as error:
            logger.warning("the metrics of devices are missing: %s", error)
        else:
            yield _offered(devices)
            yield _tainted(devices)
        try:
            ledger = self._ledger()
        except JournalError as error:
            logger.warning("the metrics of claims are missing: %s", error)
        else:
            yield _claims(ledger)
            yield _prepared(ledger)


def _offered(devices: Devices) -> GaugeMetricFamily:
    health = {True: "unhealthy", False: "healthy"}
    return _family(
        "gcu_agent_devices",
        "Devices that the node offers, by mode and by the health of the card.",
        ["mode", "health"],
        Tally(
            (mode, health[any(taint["key"] == TAINT_UNHEALTHY for taint in _taints(device))])
            for device in devices
            for mode in _mode(device)
        ),
    )


def _tainted(devices: Devices) -> GaugeMetricFamily:
    return _family(
        "gcu_agent_device_taints",
        "Devices that the node offers, by their taints; the taint allocated-by is not counted.",
        ["key", "value", "effect"],
        Tally(
            (taint["key"], taint.get("value", ""), taint["effect"])
            for device in devices
            for taint in _taints(device)
            if taint["key"] != TAINT_ALLOCATED_BY
        ),
    )


def _claims(ledger: Ledger) -> GaugeMetricFamily:
    counted = Tally(
        (held.state.value,)
        for held in ledger.claims.values()
        if not isinstance(held.owner, ContainerAllocation)
    )
    return _family(
        "gcu_agent_claims",
        "Claims in the journal, with orphans of ended claims, by their state.",
        ["state"],
        {(state.value,): counted[state.value,] for state in State},
    )


def _prepared(ledger: Ledger) -> GaugeMetricFamily:
    return _family(
        "gcu_agent_prepared_devices",
        "Devices, shares and DRS instances that prepared claims and containers have, by mode.",
        ["mode"],
        Tally(
            (device.mode.value,)
            for held in ledger.claims.values()
            if held.state is State.PREPARE_COMPLETED
            for device in held.devices
        ),
    )


def _family(
    name: str, text: str, labels: Sequence[str], values: Mapping[tuple[str, ...], int]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key in sorted(values):
        family.add_metric(key, values[key])
    return family


def _taints(device: Object) -> Sequence[Mapping[str, str]]:
    found: Sequence[Mapping[str, str]] = device.get("taints") or ()
    return found


def _mode(device: Object) -> Iterator[str]:
    try:
        yield parse_device_name(device["name"])[0].value
    except InvalidValue:  # published by another version of the driver
        return
