"""That calls of a history which come at the same time can be had again, and cannot hide a flaw."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from dra_driver.model.effects import Effects, Point
from tests.unit.node.effects import Crash
from tests.unit.node.turns import Moments, Turns


def steps(effects: Effects, told: list[str], name: str) -> Callable[[], object]:
    """A call of three effects, which tells of each."""

    def call() -> object:
        for number in range(3):
            with effects(Point.CDI_WRITE):
                told.append(f"{name}{number}")
        return name

    return call


def played(seed: int, n: int = 0) -> list[str]:
    turns, told = Turns(Random(seed)), list[str]()
    effects = Moments(turns, n)
    try:
        assert turns.play([steps(effects, told, name) for name in "abc"]) == ["a", "b", "c"]
    except Crash:
        told.append("killed")
    return told


def test_the_seed_decides_who_goes_on() -> None:
    orders = {tuple(played(seed)) for seed in range(30)}
    assert len(orders) > 20
    assert all(played(seed) == played(seed) for seed in range(30))


def test_a_kill_ends_all_of_them_at_once() -> None:
    for n in range(1, 18):
        told = played(seed=7, n=n)
        assert told[-1] == "killed"
        assert len(told) <= n


@contextmanager
def locked(turns: Turns, path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        turns.take_lock(fd, None)
        yield
    finally:
        os.close(fd)


@pytest.mark.parametrize("seed", range(20))
def test_who_wants_a_lock_lets_its_holder_go_on(tmp_path: Path, seed: int) -> None:
    turns, inside = Turns(Random(seed)), list[int]()

    def call() -> None:
        with locked(turns, tmp_path / "lock"):
            inside.append(1)
            turns.switch()
            assert len(inside) == 1
            inside.clear()

    turns.play([call] * 4)


def test_two_who_wait_for_each_other_are_found(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"

    def take(first: Path, second: Path, turns: Turns) -> None:
        with locked(turns, first), locked(turns, second):
            pass

    def play_until_they_meet() -> None:
        for seed in range(100):
            turns = Turns(Random(seed))
            calls = partial(take, one, other, turns), partial(take, other, one, turns)
            turns.play(calls)

    with pytest.raises(AssertionError, match="everybody waits for a lock"):
        play_until_they_meet()


def test_what_a_call_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("so it is")

    with pytest.raises(ValueError, match="so it is"):
        Turns(Random(0)).play([fail, lambda: None])
