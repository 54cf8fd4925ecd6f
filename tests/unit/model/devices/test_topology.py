"""How near cards are, and which are taken together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.devices.topology import CardPlace, Topology, bits, format_bridges


def below(*bridges: str, root: str = "pci0000:00", numa: int | None = 0) -> CardPlace:
    return CardPlace(tuple(bridges), root, numa)


# Switches a (cards 0 and 1) and b (2) below the switch u, a switch c (3 and 4) beside it, card 5 on
# a root port of its own; 6 and 7 are on another NUMA node, below different root complexes.
PLACES = (
    below("p", "u", "u1", "a", "a1"),
    below("p", "u", "u1", "a", "a2"),
    below("p", "u", "u2", "b", "b1"),
    below("q", "c", "c1"),
    below("q", "c", "c2"),
    below("r"),
    below("s", root="pci0000:80", numa=1),
    below("s", root="pci0000:90", numa=1),
)
ALL = bits(range(len(PLACES)))


def test_nearer_is_who_has_a_lower_bridge_in_common() -> None:
    tree = Topology(PLACES)
    near = [(0, 1), (0, 2), (0, 3), (6, 7), (5, 6)]
    distances = [tree.distance(*pair) for pair in near]
    assert distances == sorted(set(distances))
    assert tree.distance(3, 4) == tree.distance(0, 1)  # both pairs on one switch
    assert tree.distance(0, 3) == tree.distance(3, 5) == tree.distance(5, 0)  # one root complex


SAME_ROOT, SAME_NUMA_NODE, APART = (
    Topology(PLACES).distance(*pair) for pair in ((0, 3), (6, 7), (0, 6))
)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        (below("a", "x", numa=None), below("a", "y", numa=0), 2),
        (below("a", numa=None), below("b", numa=0), SAME_ROOT),
        (below("a", root="r"), below("a", root="s"), SAME_NUMA_NODE),
        (below("a", root="r", numa=None), below("a", root="s", numa=None), APART),
        (below(root="", numa=None), below(root="", numa=None), APART),
        (below("a", root=""), below("a", root=""), 1),
    ],
    ids=[
        "a bridge in common",
        "a root complex in common",
        "a bridge of another root complex is another one",
        "NUMA nodes that are not known",
        "nothing is known",
        "one bridge is all that is known",
    ],
)
def test_what_is_not_known_makes_no_cards_near(
    one: CardPlace, other: CardPlace, distance: int
) -> None:
    assert Topology([one, other]).distance(0, 1) == distance


@pytest.mark.parametrize(
    ("count", "available", "kept", "taken"),
    [
        (1, range(8), [], [6]),
        (1, [0, 1, 3, 4, 2], [], [2]),
        (2, range(8), [], [3, 4]),
        (2, [0, 1, 2, 3, 5], [], [0, 1]),
        (3, range(8), [], [0, 1, 2]),
        (3, [0, 2, 3, 4, 5], [], [3, 4, 5]),
        (2, [5, 6, 7, 0], [], [0, 5]),
        (8, range(8), [], list(range(8))),
        (9, range(8), [], None),
        (1, range(8), [0], [1]),
        (2, range(8), [2], [0, 1]),
        (1, [3, 5, 6], [0], [5]),
        (0, range(8), [0], []),
    ],
    ids=[
        "the one with the fewest near it",
        "not one of a pair",
        "the pair that is near nothing else",
        "a pair",
        "below one bridge",
        "the smaller sum",
        "one root complex",
        "all",
        "not as many",
        "beside one that is kept",
        "two beside one",
        "what breaks no pair",
        "none",
    ],
)
def test_nearest(
    count: int, available: Sequence[int], kept: Sequence[int], taken: list[int] | None
) -> None:
    found = Topology(PLACES).nearest(count, bits(available), free=ALL, kept=bits(kept))
    assert found == (None if taken is None else tuple(taken))


def test_others_could_use_what_is_free_but_not_available() -> None:
    """As where a selector leaves out cards of another model."""
    pairs = [below("p", f"s{n // 2}", f"d{n}") for n in range(4)]
    assert Topology(pairs).nearest(1, 0b0101, free=0b1101) == (0,)
    assert Topology(pairs).nearest(1, 0b0101, free=0b0111) == (2,)


trees = st.recursive(
    st.just([()]),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: [(str(n), *path) for n, part in enumerate(parts) for path in part]
    ),
    max_leaves=8,
)


@given(trees, st.data())
def test_exactly_what_trying_all_choices_finds(
    paths: list[tuple[str, ...]], data: st.DataObject
) -> None:
    places = [below(*path[1:], root=f"root-{path[:1]}", numa=len(path) % 2) for path in paths]
    cards = range(len(places))
    kept = data.draw(st.sets(st.sampled_from(cards), max_size=1))
    free = data.draw(st.sets(st.sampled_from(cards))) - kept
    available = data.draw(st.sets(st.sampled_from(sorted(free)))) if free else set()
    count = data.draw(st.integers(0, len(available)))
    tree = Topology(places)

    def rank(choice: tuple[int, ...]) -> tuple[object, ...]:
        largest, total = tree.spread(bits({*choice, *kept}))
        broken = [tree.distance(a, b) for a in choice for b in free - set(choice)]
        nearest_first = [broken.count(each) for each in range(max(broken, default=0) + 1)]
        return largest, total, [*nearest_first, *[0] * (1000 - len(nearest_first))], bits(choice)

    best = min(combinations(sorted(available), count), key=rank)
    assert tree.nearest(count, bits(available), free=bits(free), kept=bits(kept)) == best


SHAPES: dict[str, Callable[[int], CardPlace]] = {
    "roots of their own": lambda card: below(root=f"root-{card}"),
    "one root": lambda card: below(f"{card}", root="root"),
    "two NUMA nodes": lambda card: below(root=f"root-{card}", numa=card % 2),
    "switches of eight": lambda card: below(f"{card // 8}", f"{card}", root="root"),
    "a path": lambda card: below(*"abcdefgh"[: card % 8], f"{card}", root="root"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 8])
def test_a_pool_of_twice_the_cards_costs_twice_as_much(shape: str, count: int) -> None:
    """A stolen token of a node publishes thousands of them."""

    def steps(cards: int) -> int:
        places = [SHAPES[shape](card) for card in range(cards)]
        return executed(lambda: Topology(places).nearest(count, (1 << cards) - 1))

    assert steps(400) < 2.5 * steps(200)


def executed(work: Callable[[], object]) -> int:
    """How many instructions of Python the work takes, which no other work on the machine
    changes."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize(
    ("bridges", "text"),
    [
        ((), ""),
        (("0000:0c:02.0",), "0c:02.0"),
        (("10000:0c:02.0", "10000:0d:00.0"), "0c:02.0/0d:00.0"),
        ([f"0000:{n:02x}:00.0" for n in range(8)], "/".join(f"{n:02x}:00.0" for n in range(8))),
        (
            [f"0000:{n:02x}:00.0" for n in range(11)],
            "/".join(f"{n:02x}:00.0" for n in (0, 1, 2, 3, 4, 5, 6, 9)),
        ),
    ],
    ids=["none", "a root port", "a domain of five digits", "as many as fit", "more"],
)
def test_bridges_as_one_text(bridges: Sequence[str], text: str) -> None:
    assert format_bridges(bridges) == text
    assert len(text) <= 64


def test_a_place_by_what_is_published() -> None:
    nearest = CardPlace.of(bridges="", switch="0000:0d:00.0", root="r", numa=1)
    assert nearest == CardPlace(("0d:00.0",), "r", 1)
    path = CardPlace.of(
        bridges="0c:02.0/0d:00.0/0e:00.0", switch="0000:0d:00.0", root="", numa=None
    )
    assert path.bridges == ("0c:02.0", "0d:00.0", "0e:00.0")
