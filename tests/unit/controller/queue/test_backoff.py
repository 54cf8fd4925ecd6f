"""How long keys pause, by the cause; quiet times, and nodes that did not work out."""

from __future__ import annotations

import pytest

from controller.cache.keys import Key, Subject
from controller.queue.backoff import Allocated, BackoffReason, BackoffState, KeyBackoff

FULL = "Unschedulable", "0/3 nodes are available"
POD, OTHER = (Key(Subject.POD, "default", name) for name in "pq")


def backoff(drawn: float = 0.0) -> KeyBackoff:
    return KeyBackoff(lambda: drawn)


@pytest.mark.parametrize(
    ("cause", "pauses"),
    [
        (BackoffReason.STILL_UNSCHEDULABLE, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]),
        (BackoffReason.DECISION_STOPPED, [0.5 * 2**n for n in range(10)] + [300.0, 300.0]),
        (BackoffReason.FAULT, [2.0**n for n in range(9)] + [300.0, 300.0]),
        (BackoffReason.CALL_FAILED, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]),
    ],
)
def test_pauses_grow_until_they_are_forgotten(cause: BackoffReason, pauses: list[float]) -> None:
    known = backoff()
    assert [known.begin(POD, cause, 5.0) for _ in pauses] == pytest.approx(pauses)
    assert known.until(POD, cause) == 5.0 + pauses[-1]
    assert known.until(OTHER, cause) == 0.0
    known.forget(POD, cause)
    assert known.begin(POD, cause, 5.0) == pauses[0]


def test_they_are_shortened_at_random() -> None:
    assert backoff(0.5).begin(POD, BackoffReason.STILL_UNSCHEDULABLE, 0.0) == 0.75


def test_only_a_stopped_decision_and_a_fault_hold_against_changes() -> None:
    known = backoff()
    for cause in (BackoffReason.STILL_UNSCHEDULABLE, BackoffReason.CALL_FAILED):
        known.begin(POD, cause, 0.0)
        assert known.blocked_until(POD) == 0.0
    known.begin(POD, BackoffReason.DECISION_STOPPED, 0.0)
    assert known.blocked_until(POD) == 0.5
    known.begin(POD, BackoffReason.FAULT, 0.0)
    assert known.blocked_until(POD) == 1.0


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
