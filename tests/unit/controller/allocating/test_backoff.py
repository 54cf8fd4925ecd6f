"""Quiet times after a release, and nodes that did not work out."""

from __future__ import annotations

from controller.allocating.backoff import Allocated, BackoffState

FULL = "Unschedulable", "0/3 nodes are available"


def memory() -> BackoffState:
    return BackoffState(quiet_time=5.0, first_retry=30.0, longest_retry=100.0, draw=lambda: 0.0)


def test_a_released_claim_is_left_alone_for_a_while() -> None:
    known = memory()
    assert known.quiet_until("c") == 0.0
    known.record_release("c", 10.0)
    assert known.quiet_until("c") == 15.0
    assert known.was_released("c")


def test_an_allocation_ends_the_record_of_a_release() -> None:
    known = memory()
    known.record_release("c", 10.0)
    assert known.last_allocated("p") is None
    known.record_allocation("p", ["c"], Allocated(16.0, FULL))
    assert not known.was_released("c")
    assert known.allocated("p", Allocated(99.0, None)) == Allocated(16.0, FULL)
    assert known.last_allocated("p") == 16.0


def test_an_allocation_from_before_a_restart_counts_from_now() -> None:
    known = memory()
    assert known.allocated("p", Allocated(7.0, FULL)) == Allocated(7.0, FULL)
    assert known.allocated("p", Allocated(9.0, None)) == Allocated(7.0, FULL)


def test_a_failed_node_is_avoided_longer_each_time() -> None:
    known = memory()
    spans = []
    now = 0.0
    for _ in range(4):
        known.record_failure("p", "node", now)
        until = known.nodes_in_backoff("p", now)["node"]
        spans.append(until - now)
        now = until
        assert known.nodes_in_backoff("p", now) == {}
    assert spans == [30.0, 60.0, 100.0, 100.0]


def test_pods_do_not_share_their_failures() -> None:
    known = memory()
    known.record_failure("p", "node", 0.0)
    assert known.nodes_in_backoff("other", 0.0) == {}
    known.forget_pod("p")
    assert known.nodes_in_backoff("p", 0.0) == {}
