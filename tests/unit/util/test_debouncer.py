from __future__ import annotations

import threading

import pytest

from dra_driver.util.debouncer import Debouncer


def test_many_who_ask_are_served_at_once_and_later_ones_again() -> None:
    done = threading.Semaphore(0)
    now = [0.0]
    later = Debouncer(done.release, delay=0.01, longest=10, clock=lambda: now[0])
    for _ in range(100):
        later.trigger()
    now[0] = 1.0
    assert done.acquire(timeout=60)
    assert not done.acquire(timeout=0.1)
    later.trigger()
    now[0] = 2.0
    assert done.acquire(timeout=60)


def test_nothing_is_done_before_the_delay_nor_after_the_end() -> None:
    done = threading.Event()
    now = [0.0]
    later = Debouncer(done.set, delay=0.01, longest=10, clock=lambda: now[0])
    later.trigger()
    assert not done.wait(0.1)  # nobody's clock has gone on
    later.stop()
    now[0] = 1.0
    assert not done.wait(0.1)


def test_it_waits_for_quiet_but_not_for_ever() -> None:
    done = threading.Event()
    now = [0.0]
    later = Debouncer(done.set, delay=0.01, longest=0.03, clock=lambda: now[0])
    later.trigger()
    assert not done.wait(0.1)  # nobody's clock has gone on
    for now[0] in (0.009, 0.018, 0.027):  # each before the quiet since the last one is over
        later.trigger()
        assert not done.wait(0.1)
    now[0] = 0.03
    assert done.wait(60)
    later.stop()


def test_who_asks_after_a_thread_could_not_be_started_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pod may have as many threads as it is allowed, for a moment."""
    done = threading.Semaphore(0)
    now = [0.0]
    later = Debouncer(done.release, delay=0.01, longest=10, clock=lambda: now[0])

    def refuse(timer: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Timer, "start", refuse)
        later.trigger()
    later.trigger()
    now[0] = 1.0
    assert done.acquire(timeout=60)
