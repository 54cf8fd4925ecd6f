"""How long is waited after the first failure, and after many."""

from __future__ import annotations

import pytest

from dra_driver.util.backoff import Backoff


def delays(backoff: Backoff, count: int) -> list[float]:
    return [backoff.next() for _ in range(count)]


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        pytest.param(0.0, [1, 2, 4, 8, 10, 10], id="in full"),
        pytest.param(0.5, [0.75, 1.5, 3, 6, 7.5, 7.5], id="in between"),
        pytest.param(1.0, [0.5, 1, 2, 4, 5, 5], id="by half at most"),
    ],
)
def test_delays_double_up_to_the_longest_and_are_shortened(
    draw: float, expected: list[float]
) -> None:
    assert delays(Backoff(first=1.0, longest=10.0, draw=lambda: draw), 6) == expected


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first=1.0, longest=10.0, draw=lambda: 0.0)
    delays(backoff, 5)
    backoff.reset()
    assert delays(backoff, 2) == [1, 2]


def test_years_of_failures_are_no_overflow() -> None:
    assert delays(Backoff(first=1.0, longest=10.0, draw=lambda: 0.0), 5000)[-1] == 10


def test_many_that_are_refused_at_once_do_not_come_back_at_once() -> None:
    """All nodes' agents are, when the API server starts anew."""
    firsts = sorted(Backoff(first=8.0, longest=60.0).next() for _ in range(1000))
    assert 4 < firsts[0] < 4.5
    assert 7.5 < firsts[-1] <= 8
    assert max(sum(each <= other < each + 0.4 for other in firsts) for each in firsts) < 200
