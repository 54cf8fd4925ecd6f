"""What ``make bench-start`` makes of its measurements."""

from __future__ import annotations

from bench.start import Start, figures


def test_what_a_claim_costs_beyond_the_binding() -> None:
    bare = [Start(0.1, 1.0, 1.5), Start(0.2, 1.0, 1.9), Start(0.1, 0.9, 1.2)]
    found = figures({"no-claim": bare, "drs": [Start(0.5, 1.6, 2.0, 0.2)] * 3})
    assert found == {
        "no-claim": {
            "beyond_percent": 0.0,
            "own_percent": 0.0,
            "tool_p50_ms": 0,
            "bound_p50_ms": 100,
            "bound_p90_ms": 200,
            "started_p50_ms": 1000,
            "started_p90_ms": 1000,
            "running_p50_ms": 1500,
            "running_p90_ms": 1900,
        },
        "drs": {
            # 1.1 s after the binding against 0.8 s, of 1.0 s
            "beyond_percent": 30.0,
            "own_percent": 10.0,
            "tool_p50_ms": 200,
            "bound_p50_ms": 500,
            "bound_p90_ms": 500,
            "started_p50_ms": 1600,
            "started_p90_ms": 1600,
            "running_p50_ms": 2000,
            "running_p90_ms": 2000,
        },
    }
