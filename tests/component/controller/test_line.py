"""The order of waiting pods."""

from __future__ import annotations

from itertools import pairwise

from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import pod_with, whole


def test_a_freed_card_goes_by_priority_and_then_by_age(
    stage: Stage, start_controller: Start
) -> None:
    stage.add_node([whole(0)])
    start_controller()
    stage.start("holder")
    stage.bind("holder")
    for name, second, priority in (("younger", 2, 0), ("older", 1, 0), ("urgent", 3, 1000)):
        stage.add_claim(name)
        made = pod_with(name, stage.namespace, name, priority=priority)
        made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{second}Z"
        stage.put_pod(made)
        stage.wait_for_event(name, "1 held")
    line = ["older", "younger", "urgent"]
    for before, after in pairwise(["holder", "urgent", "older", "younger"]):
        stage.end(before)
        stage.bind(after)
        line.remove(after)
        assert not any(stage.is_allocated(name) for name in line)


def test_a_large_claim_is_not_passed_by_for_ever(stage: Stage, start_controller: Start) -> None:
    """Two cards on one node, asked by the pod that is first in line: what is freed there is kept
    for it, though others come who would be content with one."""
    start_controller(fairness_patience=0.3)
    node = stage.add_node([whole(0), whole(1)])
    for name in ("small-0", "small-1"):
        stage.start(name)
        stage.bind(name)
    stage.add_claim("large", count=2)
    stage.add_pod("large", "large")
    stage.wait_for_event("large", "2 held")
    stage.stays(lambda: not stage.is_allocated("large"), 0.4, "waiting")
    stage.start("small-2")
    stage.wait_for_event("small-2", f"{stage.namespace}/large")
    stage.end("small-0")
    stage.stays(lambda: not stage.is_allocated("small-2"), 0.3, "one card kept")
    stage.end("small-1")
    assert stage.bind("large") == node
    assert not stage.is_allocated("small-2")
    stage.end("large")
    stage.bind("small-2")
