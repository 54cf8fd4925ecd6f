"""A metric described once: it is registered from its description, and docs/user/monitoring.md lists
the same descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily

from dra_driver.version import VERSION


class MetricSpec(msgspec.Struct, frozen=True):
    """`name` is without the suffix that Prometheus' text format adds to a counter (``_total``)."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


class CounterSpec(MetricSpec, frozen=True):
    def register(self, registry: CollectorRegistry) -> Counter:
        return Counter(self.name, self.help, self.labels, registry=registry)


class GaugeSpec(MetricSpec, frozen=True):
    def register(self, registry: CollectorRegistry) -> Gauge:
        return Gauge(self.name, self.help, self.labels, registry=registry)

    def samples(self, values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
        """For a collector; `values` by the values of the labels."""
        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for key in sorted(values):
            family.add_metric(key, values[key])
        return family


class HistogramSpec(MetricSpec, frozen=True):
    """`buckets` are upper bounds, in the unit that ends the name."""

    buckets: tuple[float, ...] = ()

    def register(self, registry: CollectorRegistry) -> Histogram:
        return Histogram(self.name, self.help, self.labels, buckets=self.buckets, registry=registry)


BUILD_INFO: Final = GaugeSpec("gcu_build_info", "1, with the version of the driver.", ("version",))


def register_build_info(registry: CollectorRegistry) -> None:
    """For each program."""
    BUILD_INFO.register(registry).labels(VERSION).set(1)
