"""How long keys pause, by the cause."""

from __future__ import annotations

import pytest

from controller.cache.keys import Key, Subject
from controller.queue.retry_backoff import FAULT_RETRY, Cause, RetryBackoff

POD, OTHER = (Key(Subject.POD, "default", name) for name in "pq")


def backoff(drawn: float = 0.0) -> RetryBackoff:
    return RetryBackoff(lambda: drawn)


@pytest.mark.parametrize(
    ("cause", "pauses"),
    [
        (Cause.WOKEN_IN_VAIN, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]),
        (Cause.STOPPED, [0.5 * 2**n for n in range(10)] + [300.0, 300.0]),
        (Cause.CALL_FAILED, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]),
    ],
)
def test_pauses_grow_until_they_are_forgotten(cause: Cause, pauses: list[float]) -> None:
    known = backoff()
    assert [known.begin(POD, cause, 5.0) for _ in pauses] == pytest.approx(pauses)
    assert known.ends(POD, cause) == 5.0 + pauses[-1]
    assert known.ends(OTHER, cause) == 0.0
    assert known.forget(POD, cause)
    assert known.begin(POD, cause, 5.0) == pauses[0]


def test_they_are_shortened_at_random() -> None:
    assert backoff(0.5).begin(POD, Cause.WOKEN_IN_VAIN, 0.0) == 0.75


def test_only_a_stopped_decision_and_a_fault_hold_against_changes() -> None:
    known = backoff()
    for cause in (Cause.WOKEN_IN_VAIN, Cause.CALL_FAILED):
        known.begin(POD, cause, 0.0)
        assert known.until(POD) == 0.0
    known.begin(POD, Cause.STOPPED, 0.0)
    assert known.until(POD) == 0.5


def test_what_is_set_aside_is_tried_at_once_after_its_first_change_then_later() -> None:
    known = backoff()
    assert known.set_aside(POD, 10.0) == 10.0 + FAULT_RETRY
    known.on_change(POD)
    assert known.until(POD) == 10.0
    tries = []
    for _ in range(3):
        known.set_aside(POD, 20.0)
        known.on_change(POD)
        tries.append(known.until(POD))
    assert tries == [21.0, 22.0, 24.0]
    assert known.set_aside_keys() == 1
