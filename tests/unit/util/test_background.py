"""A part in a thread of its own."""

from __future__ import annotations

import threading

from dra_driver.util.background import Background

PATIENCE = 10.0


class Counting(Background):
    """Counts its turns, and between two of them waits for as long as `wait` takes."""

    def __init__(self) -> None:
        super().__init__("counting", wait=lambda _: self._stopped.is_set())
        self.turns = 0
        self.turned = threading.Event()

    def run(self) -> None:
        while not self._wait(1.0):
            self.turns += 1
            self.turned.set()


class Holding(Background):
    """Waits for something else than the end."""

    def __init__(self) -> None:
        self.news = threading.Event()
        super().__init__("holding", interrupt=self.news.set)
        self.let_go = threading.Event()

    def run(self) -> None:
        self.news.wait()
        self.let_go.wait()


def test_it_works_until_it_is_stopped() -> None:
    part = Counting()
    assert (part.is_alive(), part.ended()) == (False, None)
    part.start()
    part.start()
    assert part.turned.wait(PATIENCE)
    assert (part.is_alive(), part.ended()) == (True, None)
    part.stop(PATIENCE)
    assert (part.is_alive(), part.ended()) == (False, "counting")


def test_stop_ends_what_it_waits_for_and_not_what_it_has_in_hand() -> None:
    part = Holding()
    part.start()
    part.stop(timeout=0.0)
    assert part.news.is_set()
    assert part.is_alive()
    part.let_go.set()
    part.stop(PATIENCE)
    assert not part.is_alive()


def test_what_never_began_can_be_stopped() -> None:
    part = Counting()
    part.stop(PATIENCE)
    assert part.turns == 0
