"""What kube-scheduler's verdicts prove about what it has seen."""

from __future__ import annotations

import pytest

from controller.allocating.scheduler_sight import SchedulerSight

ELSEWHERE = (
    "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 resourceclaim not "
    "available on the node. deallocation of ResourceClaim completed, preemption: 0/3 nodes are "
    "available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for "
    "scheduling."
)
UNALLOCATED = "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable"
BOTH = (
    "0/3 nodes are available: 1 cannot allocate all claims, 2 resourceclaim not available on the "
    "node. deallocation of ResourceClaim completed"
)
ANOTHER = "0/3 nodes are available: 3 Insufficient cpu."


@pytest.mark.parametrize(
    ("verdicts", "has_seen"),
    [
        pytest.param([ELSEWHERE, UNALLOCATED], True, id="the allocation, then its release"),
        pytest.param([ELSEWHERE, ANOTHER, UNALLOCATED], True, id="something else between"),
        pytest.param([UNALLOCATED], False, id="perhaps from before the allocation"),
        pytest.param([UNALLOCATED, ELSEWHERE], False, id="not the release yet"),
        pytest.param([ELSEWHERE], False, id="the allocation alone"),
        pytest.param([ELSEWHERE, ANOTHER], False, id="nothing about claims"),
        pytest.param([ELSEWHERE, BOTH], False, id="a claim of another driver lacks devices"),
    ],
)
def test_what_proves_that_it_has_seen_the_release(verdicts: list[str], *, has_seen: bool) -> None:
    sight = SchedulerSight()
    sight.begin_allocation("p", "a")
    for verdict in verdicts:
        sight.on_verdict("p", verdict)
    assert sight.has_seen_release("p") is has_seen


def test_another_allocation_makes_earlier_verdicts_worthless() -> None:
    sight = SchedulerSight()
    sight.begin_allocation("p", "a")
    sight.on_verdict("p", ELSEWHERE)
    sight.begin_allocation("p", "b")
    sight.on_verdict("p", UNALLOCATED)
    assert not sight.has_seen_release("p")


def test_which_node_it_refused() -> None:
    sight = SchedulerSight()
    assert sight.on_verdict("p", ELSEWHERE) is None
    sight.begin_allocation("p", "a")
    assert sight.on_verdict("p", UNALLOCATED) is None
    assert sight.on_verdict("p", ELSEWHERE) == "a"
    assert sight.on_verdict("p", BOTH) is None
    sight.forget("p")
    assert sight.on_verdict("p", ELSEWHERE) is None
