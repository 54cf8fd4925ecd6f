"""When people are told that a node does not serve GCUs."""

from __future__ import annotations

import pytest

from dra_driver.agent.events import EventReporter
from dra_driver.agent.lifecycle.readiness import ReadinessReporter
from tests.unit.agent.recorder import ListRecorder

AWAY, REFUSED = "server away", "kubelet refused"


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        pytest.param([(0, None), (60, None)], [], id="all well"),
        pytest.param([(0, AWAY), (14, AWAY), (16, None)], [], id="over before it matters"),
        pytest.param([(0, AWAY), (15, AWAY)], [f"GcuNotServing {AWAY}"], id="stays"),
        pytest.param(
            [(0, AWAY), (15, AWAY), (99, AWAY)], [f"GcuNotServing {AWAY}"], id="told once"
        ),
        pytest.param(
            [(0, AWAY), (15, AWAY), (20, REFUSED)],
            [f"GcuNotServing {AWAY}", f"GcuNotServing {REFUSED}"],
            id="another reason",
        ),
        pytest.param(
            [(0, AWAY), (10, REFUSED), (15, REFUSED)],
            [f"GcuNotServing {REFUSED}"],
            id="not serving all the while, for reasons that follow each other",
        ),
        pytest.param(
            [(0, AWAY), (15, AWAY), (20, None), (30, None)],
            [f"GcuNotServing {AWAY}", "GcuServing GCUs of this node are served again"],
            id="over",
        ),
        pytest.param(
            [(0, AWAY), (10, None), (12, AWAY), (26, AWAY)],
            [],
            id="counted anew after a good look",
        ),
    ],
)
def test_what_is_told(looks: list[tuple[float, str | None]], told: list[str]) -> None:
    recorder = ListRecorder()
    now: float = 0
    problem: str | None = None
    readiness = ReadinessReporter(lambda: problem, EventReporter(recorder, "n1"), lambda: now)
    for now, problem in looks:  # noqa: B007 (read by the lambdas)
        readiness.run_once()
    assert recorder.lines == told
