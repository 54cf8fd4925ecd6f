"""How much cards and nodes repeat, and what that saves for a claim shape never seen before.

For three fleets (`bench.fleets`): how many distinct states their cards and nodes have, and the CPU
time to find, for one shape, every node's best card and the nodes in that order: card by card, once
for each distinct card, and once for each distinct node. Then the two steps of a decision that do
depend on the number of nodes: to intersect bitmasks of nodes, and to find the first node that is
left.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from bench.fleet import SLICES
from bench.fleets import FLEETS, FREE, CardState, NodeState
from bench.report import percentile, result, table

NODES: Final = 15_000
_REPEATS: Final = 5
_ASKED: Final = 2  # slices of a shared card

Score = tuple[int, int]  # whether a free card is opened, and what would be left of the card


def score(card: CardState) -> Score | None:
    """How well the card serves the shape; None where it cannot."""
    if card.mode not in {FREE, "shared"} or card.used + _ASKED > SLICES:
        return None
    return (int(card.mode == FREE), SLICES - card.used - _ASKED)


def best(scores: Iterable[Score | None]) -> Score | None:
    return min((each for each in scores if each is not None), default=None)


def by_card(nodes: Sequence[NodeState]) -> list[Score | None]:
    return [best(map(score, node.cards)) for node in nodes]


def by_distinct_card(
    cards: Sequence[CardState], nodes: Sequence[tuple[int, ...]]
) -> list[Score | None]:
    """`nodes` has for each node the numbers of its cards' states in `cards`."""
    known = [score(card) for card in cards]
    return [best([known[each] for each in node]) for node in nodes]


def by_distinct_node(
    cards: Sequence[CardState], distinct: Sequence[tuple[int, ...]], nodes: Sequence[int]
) -> list[Score | None]:
    """`nodes` has for each node the number of its state in `distinct`."""
    known = by_distinct_card(cards, distinct)
    return [known[each] for each in nodes]


def masks(scores: Sequence[Score | None]) -> dict[Score, int]:
    """The nodes of each score as a bitmask, best score first."""
    found: dict[Score, bytearray] = {}
    size = len(scores) // 8 + 1
    for number, each in enumerate(scores):
        if each is not None:
            found.setdefault(each, bytearray(size))[number >> 3] |= 1 << (number & 7)
    return {each: int.from_bytes(found[each], "little") for each in sorted(found)}


def first(order: Iterable[int], allowed: int) -> int:
    """The first node that is allowed: in the order of the masks, then by number; -1 for none."""
    for mask in order:
        if left := mask & allowed:
            return (left & -left).bit_length() - 1
    return -1


def free_tree(node: NodeState) -> Hashable:
    """Where the free cards are, up to what the places are called: how many on each switch, switches
    by NUMA node."""
    counts = [sum(node.cards[card].mode == FREE for card in switch) for switch in node.switches]
    half = len(counts) // 2
    return tuple(sorted(tuple(sorted(part)) for part in (counts[:half], counts[half:])))


def measure(name: str, count: int) -> dict[str, Any]:
    """States and milliseconds of one fleet."""
    draw = random.Random(name)
    nodes = list(FLEETS[name](count, draw))
    cards = _numbered(card for node in nodes for card in node.cards)
    by_place = _numbered(tuple(cards[card] for card in node.cards) for node in nodes)
    unordered = {tuple(sorted(cards[card] for card in node.cards)) for node in nodes}
    located = {(tuple(cards[c] for c in node.cards), node.switches) for node in nodes}
    labelled = {(*each, frozenset(node.labels.items())) for each, node in _with(nodes, cards)}
    card_ids = [tuple(cards[card] for card in node.cards) for node in nodes]
    node_ids = [by_place[each] for each in card_ids]
    plain, distinct = list(cards), list(by_place)
    found = by_card(nodes)
    assert found == by_distinct_card(plain, card_ids)
    assert found == by_distinct_node(plain, distinct, node_ids)
    order = list(masks(found).values())
    half = draw.getrandbits(count)
    return {
        "cards": len(cards),
        "nodes_unordered": len(unordered),
        "nodes_by_place": len(by_place),
        "nodes_with_switches": len(located),
        "nodes_with_labels": len(labelled),
        "free_trees": len({free_tree(node) for node in nodes}),
        "by_card_ms": _milliseconds(lambda: by_card(nodes)),
        "by_distinct_card_ms": _milliseconds(lambda: by_distinct_card(plain, card_ids)),
        "by_distinct_node_ms": _milliseconds(lambda: by_distinct_node(plain, distinct, node_ids)),
        "masks_ms": _milliseconds(lambda: masks(found)),
        "first_us": 1_000 * _milliseconds(lambda: [first(order, half) for _ in range(100)]) / 100,
    }


def _with(
    nodes: Sequence[NodeState], cards: dict[Hashable, int]
) -> Iterable[tuple[tuple[Hashable, ...], NodeState]]:
    return (((tuple(cards[c] for c in node.cards), node.switches), node) for node in nodes)


def _numbered(values: Iterable[Any]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for each in values:
        found.setdefault(each, len(found))
    return found


def _milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS):
        started = time.thread_time_ns()
        work()
        times.append((time.thread_time_ns() - started) / 1e6)
    return round(percentile(times, 0.5), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    count = parser.parse_args().nodes
    figures = {name: measure(name, count) for name in FLEETS}
    rows = [[what, *(figures[name][what] for name in FLEETS)] for what in figures["uniform"]]
    table(f"Distinct states and CPU time, {count:,} nodes", ["", *FLEETS], rows)
    result(figures)


if __name__ == "__main__":
    main()
