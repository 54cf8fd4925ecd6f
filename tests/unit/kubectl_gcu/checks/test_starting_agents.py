"""What `kubectl gcu doctor` leaves out while the agent of a node is not ready."""

from __future__ import annotations

import copy

import pytest

from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks.installation import Installation
from tests.unit.controller.allocator.build import allocated, device, pool, resource_slice
from tests.unit.kubectl_gcu.checks.installations import (
    CLAIM,
    found_in,
    ours,
    part,
    pod,
    with_pods,
    with_state,
)


def starting() -> Object:
    """An agent whose container runs, and which is not ready yet."""
    found = copy.deepcopy(part("agent", "a"))
    found["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    return found


def not_reported() -> Object:
    found = copy.deepcopy(CLAIM)
    del found["status"]["devices"]
    return found


NOT_PUBLISHED = with_state(
    slices=tuple(pool("a", [device("whole", 2)])),
    claims=(ours(allocated("one", "a", "whole-0000-01-00-0"), "user"),),
)
INCOMPLETE = with_state(slices=(resource_slice("a", [device("whole", 1)], count=2),))
NOT_REPORTED = with_state(claims=(not_reported(),))


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (NOT_PUBLISHED, "card-problem: node a, card 0000:01:00.0: not published; held by default/"),
        (INCOMPLETE, "incomplete-pool: node a: it has 1 of 2 ResourceSlices, so "),
        (NOT_REPORTED, "not-reported: claim default/one: its pod runs, and the agent has not "),
    ],
    ids=["a card", "slices", "a report"],
)
def test_what_the_agent_has_not_done_yet(state: Installation, line: str) -> None:
    controller = part("controller", "b")
    at_work = with_state(of=state, pods=(part("agent", "a"), controller, pod("user")))
    [found] = found_in(at_work)
    assert found.startswith(line)
    [found] = found_in(with_state(of=state, pods=(starting(), controller, pod("user"))))
    assert found.startswith(
        "pod-not-ready: pod gcu/agent-a on node a: it is not ready (its readiness fails), and what "
        "depends on it is not looked at. See kubectl logs"
    )


def test_one_ready_agent_of_an_update_is_enough() -> None:
    lines = found_in(with_pods(pod("user"), starting(), of=NOT_PUBLISHED))
    assert [line.partition(":")[0] for line in lines] == ["pod-not-ready", "card-problem"]
