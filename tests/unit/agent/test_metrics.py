"""What is counted as it happens."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from dra_driver.agent.metrics import AgentMetrics
from dra_driver.kubelet_api.dra.service import DraServicer
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError, Refused
from tests.unit.kubelet_api.callers import prepare, unprepare
from tests.unit.kubelet_api.dra.handler import Handler
from tests.unit.node.claims.counted import ref

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


class Counted(AgentMetrics):
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        super().__init__(self.registry, lambda: NOW)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"gcu_agent_{name}", labels)


@pytest.fixture
def metrics() -> Counted:
    return Counted()


@pytest.mark.parametrize(
    ("allocation", "seconds"),
    [
        pytest.param({"allocationTimestamp": "2026-01-01T00:00:04Z"}, [6.0], id="allocated before"),
        pytest.param({"allocationTimestamp": "2026-01-01T00:00:11Z"}, [0.0], id="another clock"),
        pytest.param({"devices": {}}, [], id="not known when"),
    ],
)
def test_from_allocation_to_prepared(
    metrics: Counted, allocation: Object, seconds: list[float]
) -> None:
    claim = {"metadata": {"name": "c", "uid": "u"}, "status": {"allocation": allocation}}
    metrics.on_prepared(claim)
    assert metrics.value("prepared_duration_seconds_count") == len(seconds)
    assert metrics.value("prepared_duration_seconds_sum") == sum(seconds)


def test_calls_of_the_kubelet(metrics: Counted) -> None:
    answers = Handler({"uid-a": (), "uid-bad": Refused("no")}, {"uid-bad": GcuError("no")})
    claims = DraServicer(answers, metrics.claims, Effects())
    prepare(claims, [ref("a"), ref("bad")])
    prepare(claims, [ref("a")])
    unprepare(claims, [ref("bad")])
    assert metrics.value("request_duration_seconds_count", operation="prepare") == 2
    assert metrics.value("request_duration_seconds_count", operation="unprepare") == 1
    assert metrics.value("requests_inflight", operation="prepare") == 0
    assert metrics.value("claim_errors_total", operation="prepare", error="Refused") == 1
    assert metrics.value("claim_errors_total", operation="unprepare", error="GcuError") == 1


def test_allocate(metrics: Counted) -> None:
    with metrics.allocating("example.com/gcu"):
        assert metrics.value("requests_inflight", operation="allocate") == 1
    with pytest.raises(Refused), metrics.allocating("example.com/gcu"):
        raise Refused("no")
    assert metrics.value("request_duration_seconds_count", operation="allocate") == 2
    assert metrics.value("requests_inflight", operation="allocate") == 0
    assert metrics.value("allocate_errors_total", resource="example.com/gcu", error="Refused") == 1
