"""Quiet times and nodes that did not work out."""

from __future__ import annotations

from controller.queue.backoff_state import BackoffState


def memory() -> BackoffState:
    return BackoffState(quiet=5.0, first_retry=30.0, longest_retry=100.0, draw=lambda: 0.0)


def test_a_released_claim_is_left_alone_for_a_while() -> None:
    known = memory()
    assert known.quiet_until("c") == 0.0
    known.released("c", 10.0)
    assert known.quiet_until("c") == 15.0
    assert known.was_released("c")


def test_a_grant_ends_the_story_of_a_release() -> None:
    known = memory()
    known.released("c", 10.0)
    known.granted("p", ["c"], 16.0, "full")
    assert not known.was_released("c")
    assert known.granted_at("p", 99.0, None) == (16.0, "full")


def test_an_allocation_from_before_a_restart_counts_from_now() -> None:
    known = memory()
    assert known.granted_at("p", 7.0, "full") == (7.0, "full")
    assert known.granted_at("p", 9.0, None) == (7.0, "full")


def test_a_failed_node_is_avoided_longer_each_time() -> None:
    known = memory()
    spans = []
    now = 0.0
    for _ in range(4):
        known.failed("p", "node", now)
        until = known.avoided("p", now)["node"]
        spans.append(until - now)
        now = until
        assert known.avoided("p", now) == {}
    assert spans == [30.0, 60.0, 100.0, 100.0]


def test_pods_do_not_share_their_failures() -> None:
    known = memory()
    known.failed("p", "node", 0.0)
    assert known.avoided("other", 0.0) == {}
    known.forget_pod("p")
    assert known.avoided("p", 0.0) == {}
