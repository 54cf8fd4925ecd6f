"""What is counted as it happens; tests/component/agent/test_metrics.py has the calls themselves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from dra_driver.agent.metrics import AgentMetrics
from dra_driver.model.claims.claim import Object

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("allocation", "seconds"),
    [
        pytest.param({"allocationTimestamp": "2026-01-01T00:00:04Z"}, [6.0], id="allocated before"),
        pytest.param({"allocationTimestamp": "2026-01-01T00:00:11Z"}, [0.0], id="another clock"),
        pytest.param({"devices": {}}, [], id="not known when"),
    ],
)
def test_from_allocation_to_prepared(allocation: Object, seconds: list[float]) -> None:
    registry = CollectorRegistry()
    claim = {"metadata": {"name": "c", "uid": "u"}, "status": {"allocation": allocation}}
    AgentMetrics(registry, lambda: NOW).on_prepared(claim)
    name = "gcu_agent_prepared_duration_seconds"
    assert registry.get_sample_value(f"{name}_count") == len(seconds)
    assert registry.get_sample_value(f"{name}_sum") == sum(seconds)
