"""Sets of nodes as integers."""

from __future__ import annotations

import random

import pytest

from controller.allocator.nodes.node_set import Levels, NodeCounter, NodeNumbers, numbers


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 64, 65, 500])
def test_numbers_of_a_set_ascend(size: int) -> None:
    chosen = sorted(random.Random(size).sample(range(2_000), size))
    assert list(numbers(sum(1 << each for each in chosen))) == chosen


@pytest.mark.parametrize("known", [0, 3, 40])
def test_names_and_back(known: int) -> None:
    nodes = NodeNumbers()
    for number in range(known):
        nodes.number(f"known-{number}")
    wanted = {f"n{number:03}" for number in range(100)} | {f"known-{n}" for n in range(known)}
    for given in (wanted, frozenset(wanted), sorted(wanted)):
        assert set(nodes.names(nodes.set_of(given))) == wanted


def test_the_numbers_of_new_names_are_not_by_chance() -> None:
    """Two nodes that are equally good are told apart by their numbers."""
    nodes = NodeNumbers()
    nodes.set_of(frozenset(f"n{number:03}" for number in range(100)))
    assert [nodes.name(number) for number in range(100)] == [f"n{n:03}" for n in range(100)]


def test_nodes_are_numbered_anew_when_most_numbers_are_of_nodes_that_are_gone() -> None:
    nodes = NodeNumbers()
    left = frozenset({"n0", "n9999"})
    for number in range(10_000):
        nodes.number(f"n{number}")
    before = nodes.set_of(left)
    nodes.trim(left | {f"n{number}" for number in range(5_000)})
    assert (nodes.epoch, nodes.set_of(left)) == (0, before)
    nodes.trim(left)
    assert nodes.epoch == 1
    assert nodes.set_of(left) == 0b11


@pytest.mark.parametrize("sets", [0, 1, 2, 7, 40])
def test_a_count_for_each_node(sets: int) -> None:
    draw = random.Random(sets)
    given = [draw.getrandbits(300) & draw.getrandbits(300) for _ in range(sets)]
    counts = [sum(each >> number & 1 for each in given) for number in range(300)]
    counter = NodeCounter(given)
    assert counter.most() == max(counts)
    for least in range(1, 42):
        expected = sum(1 << number for number, count in enumerate(counts) if count >= least)
        assert counter.at_least(least) == expected
    some = draw.getrandbits(300)
    parts = counter.split(some)
    assert sum(parts) == some
    for part in parts:
        assert len({counts[number] for number in numbers(part)}) == 1


@pytest.mark.parametrize("width", [1, 10])
def test_a_set_is_split_by_level(width: int) -> None:
    levels = Levels(width)
    for number, level in enumerate([(1, 0), (0, 2), (1, 0), (0, 1)]):
        levels.add(level, 1 << number)
    levels.remove((1, 0), 0b100)
    assert list(levels.walk(0b1111)) == [0b1000, 0b0010, 0b0001]
    assert list(levels.walk(0b0101)) == [0b0001]
    levels.remove((0, 1), 0b1000)
    assert list(levels.walk(0b1111)) == [0b0010, 0b0001]
    assert list(levels.walk(0)) == []


@pytest.mark.parametrize("width", [1, 10])
def test_a_level_may_be_below_zero(width: int) -> None:
    levels = Levels(width)
    for number, level in enumerate([(0, 0), (-1, 0)]):
        levels.add(level, 1 << number)
    assert list(levels.walk(0b11)) == [0b10, 0b01]
