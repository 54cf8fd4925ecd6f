"""Many who read metrics at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dra_driver.telemetry.probes import MOST_CONNECTIONS
from tests.unit.telemetry.asking import Serve, ask


class Slow(Collector):
    """Metrics that take until `go` is set."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.go = threading.Event()
        self.made = 0

    def collect(self) -> Iterator[Metric]:
        self.made += 1
        self.asked.release()
        self.go.wait(60)
        yield GaugeMetricFamily("made", "How often.", self.made)


def test_a_crowd_that_reads_metrics_keeps_nobody_from_probes(serve: Serve) -> None:
    registry, slow = CollectorRegistry(auto_describe=False), Slow()
    registry.register(slow)
    server = serve(registry=registry)
    answers: list[tuple[int, str]] = []
    readers = [
        threading.Thread(target=lambda: answers.append(ask(server, "/metrics")[:2]))
        for _ in range(2 * MOST_CONNECTIONS)
    ]
    try:
        for reader in readers:
            reader.start()
        assert slow.asked.acquire(timeout=60)
        assert ask(server, "/healthz")[:2] == (200, "ok")
    finally:
        slow.go.set()
        for reader in readers:
            reader.join()
    refused = [text for status, text in answers if status == 503]
    assert set(refused) == {"too many clients read the metrics"}
    assert any(status == 200 and "made 1.0" in text for status, text in answers)


def test_metrics_are_made_ten_times_a_second_at_most(serve: Serve) -> None:
    paused: list[float] = []

    def wait(seconds: float) -> bool:
        paused.append(seconds)
        return False

    now = iter([0.0, 0.0, 0.0, 0.03, 0.03, 0.1, 5.0, 5.0, 5.0])
    registry = CollectorRegistry()
    count = Counter("seen", "How often.", registry=registry)
    server = serve(registry=registry, clock=lambda: next(now), wait=wait)
    for number in range(3):
        assert f"seen_total {number}.0" in ask(server, "/metrics")[1]
        count.inc()
    assert paused == pytest.approx([0.0, 0.07, 0.0])
