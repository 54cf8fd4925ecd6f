"""How long an allocation may wait for its pod to be bound."""

from __future__ import annotations

import pytest

from controller.allocating.bind_clock import BindClock
from controller.cache.pods import BINDING_LIMIT

TRIED = "Unschedulable", "0/3 nodes are available"


def clock() -> BindClock:
    return BindClock(patience=30.0, first_pause=30.0, longest_pause=600.0, draw=lambda: 0.0)


def test_without_bindings_the_setting_counts() -> None:
    assert clock().patience(0.0) == 30.0


@pytest.mark.parametrize(
    ("seconds", "patience"),
    [
        ([0.1] * 100, 30.0),
        ([20.0], 40.0),
        ([20.0] * 99 + [200.0], 40.0),  # one of a hundred is slower
        ([20.0] * 98 + [200.0] * 2, 400.0),
        ([500.0] * 3, BINDING_LIMIT),
    ],
)
def test_it_is_stretched_to_twice_the_99th_percentile(
    seconds: list[float], patience: float
) -> None:
    known = clock()
    for each in seconds:
        known.record_binding(each, 10.0)
    assert known.patience(10.0) == patience


def test_bindings_of_long_ago_do_not_count() -> None:
    known = clock()
    known.record_binding(100.0, 0.0)
    assert known.patience(600.0) == 200.0
    assert known.patience(600.1) == 30.0


def test_pauses_grow_until_the_pod_is_bound() -> None:
    known = clock()
    assert [known.begin_pause("p", 0.0) for _ in range(6)] == [30, 60, 120, 240, 480, 600]
    assert known.paused_until("p", None) == 600.0
    known.forget("p")
    assert known.paused_until("p", None) == 0.0
    assert known.begin_pause("p", 0.0) == 30.0


def test_a_pause_for_want_of_a_scheduler_ends_when_one_tries_the_pod() -> None:
    known = clock()
    known.begin_pause("p", 0.0, until_tried=True, condition=None)
    assert known.paused_until("p", None) == 30.0
    assert known.paused_until("p", TRIED) == 0.0


def test_any_other_pause_does_not() -> None:
    known = clock()
    known.begin_pause("p", 0.0, condition=None)
    assert known.paused_until("p", TRIED) == 30.0


def test_two_units_meet_once_whoever_gave() -> None:
    known = clock()
    assert not known.have_met("p", "q")
    known.begin_handover("p", "q", "q", 0.0)
    assert known.have_met("p", "q")
    assert known.have_met("q", "p")
    assert not known.have_met("q", "r")


def test_a_pod_is_promised_devices_until_it_has_them() -> None:
    known = clock()
    known.begin_handover("p", "q", "q", 0.0)
    assert known.is_promised("q", 9.9)
    assert not known.is_promised("q", 10.0)
    known.record_allocation("q", "q", 1.0)
    assert not known.is_promised("q", 1.0)


def test_a_release_that_failed_pauses_nobody() -> None:
    known = clock()
    known.begin_pause("p", 0.0)
    known.begin_handover("p", "q", "q", 0.0)
    known.on_not_released("p", "q", "q")
    assert not known.have_met("q", "p")
    assert known.paused_until("p", None) == 0.0
    assert not known.is_promised("q", 0.0)


def test_the_clock_of_a_gang_starts_at_its_last_allocation() -> None:
    known = clock()
    known.record_allocation("gang", "p", 5.0)
    known.record_allocation("gang", "q", 7.0)
    assert known.allocated_at("gang", 6.0) == 7.0
    assert known.allocated_at("other", 6.0) == 6.0
