from __future__ import annotations

import threading

from dra_driver.agent.later import Later


def test_many_who_ask_are_served_at_once_and_later_ones_again() -> None:
    done = threading.Semaphore(0)
    later = Later(done.release, delay=0.05)
    for _ in range(100):
        later.ask()
    assert done.acquire(timeout=10)
    assert not done.acquire(timeout=0.1)
    later.ask()
    assert done.acquire(timeout=10)


def test_nothing_is_done_before_the_delay_nor_after_the_end() -> None:
    done = threading.Event()
    later = Later(done.set, delay=0.2)
    later.ask()
    assert not done.is_set()
    later.stop()
    assert not done.wait(0.4)
