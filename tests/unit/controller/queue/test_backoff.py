"""How long keys pause, by the cause."""

from __future__ import annotations

import pytest

from controller.cache.keys import Key, Subject
from controller.queue.backoff import BackoffReason, KeyBackoff

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
