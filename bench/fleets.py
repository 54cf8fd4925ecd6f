"""Three fleets of nodes with 8 cards each, about half in use, as plain values.

- ``uniform``: one model; each node has one whole card, one shared card and one DRS card in use, one
  node in ten none.
- ``openb``: as many models as the trace's node list has, in its proportions; the jobs of the trace,
  drawn with replacement, are placed one after another by best fit until four fifths of all slices
  are used, and end in any order until half of them are.
- ``drawn``: model, mode, use and place of each card and the labels of each node are drawn at
  random, so that hardly two nodes are alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.fleet import CARDS, SLICES
from bench.trace import load, models

FREE: Final = ""
_SIZES: Final = (1, 3, 6)
_ZONES: Final = ("a", "b", "c")
_LABELS: Final = 12
"""Labels of two values each that a drawn node may have: 4,096 combinations."""


@dataclass(frozen=True, slots=True)
class CardState:
    """What an allocation needs to know of a card: model, mode (`FREE` if none), and the amounts of
    its claims, smallest first, in slices."""

    model: str
    mode: str = FREE
    amounts: tuple[int, ...] = ()

    @property
    def used(self) -> int:
        return sum(self.amounts)


@dataclass(frozen=True, slots=True)
class NodeState:
    """Cards by place: two on a PCIe switch (`switches` has the cards of each), four on a NUMA
    node."""

    cards: tuple[CardState, ...]
    switches: tuple[tuple[int, ...], ...]
    labels: Mapping[str, str] = field(default_factory=dict)


Fleet = Callable[[int, random.Random], Iterator[NodeState]]

_PAIRS: Final = tuple((card, card + 1) for card in range(0, CARDS, 2))


def uniform(nodes: int, draw: random.Random) -> Iterator[NodeState]:
    for number in range(nodes):
        cards = [CardState("S60")] * CARDS
        if draw.random() >= 0.1:
            whole, shared, drs = draw.sample(range(CARDS), 3)
            cards[whole] = CardState("S60", "whole", (SLICES,))
            cards[shared] = CardState("S60", "shared", (1,) * draw.randint(3, 5))
            cards[drs] = CardState("S60", "drs", (1,) * draw.randint(2, 4))
        yield NodeState(tuple(cards), _PAIRS, _zone(number))


def openb(nodes: int, draw: random.Random) -> Iterator[NodeState]:
    found = models()
    kinds = draw.choices(tuple(found), tuple(found.values()), k=nodes)
    jobs, room = load(), _Room(nodes)
    total = nodes * CARDS * SLICES
    while room.used < total * 4 // 5:
        job = draw.choice(jobs)
        room.place(job.mode, job.slices)
    while room.used > total // 2:
        room.end_any(draw)
    for number, kind in enumerate(kinds):
        cards = (CardState(kind, mode, tuple(sorted(held))) for mode, held in room.cards_of(number))
        yield NodeState(tuple(cards), _PAIRS, _zone(number))


def drawn(nodes: int, draw: random.Random) -> Iterator[NodeState]:
    kinds = tuple(models())
    for number in range(nodes):
        cards = [CardState(draw.choice(kinds), *_use(draw)) for _ in range(CARDS)]
        places = list(range(CARDS))
        draw.shuffle(places)
        switches = tuple(tuple(sorted(places[n : n + 2])) for n in range(0, CARDS, 2))
        labels = {f"label-{n}": str(draw.randrange(2)) for n in range(_LABELS)}
        yield NodeState(tuple(cards), switches, _zone(number) | labels)


FLEETS: Final[Mapping[str, Fleet]] = {"uniform": uniform, "openb": openb, "drawn": drawn}


def _zone(number: int) -> dict[str, str]:
    return {"topology.kubernetes.io/zone": _ZONES[number % len(_ZONES)]}


def _use(draw: random.Random) -> tuple[str, tuple[int, ...]]:
    """A mode and amounts; half of all slices are used, on average."""
    mode = draw.choice((FREE, FREE, "whole", "shared", "drs"))
    match mode:
        case "whole":
            return mode, (SLICES,)
        case "shared":
            return mode, (1,) * draw.randint(1, SLICES)
        case "drs":
            return mode, draw.choice(((1,), (1, 1), (1, 1, 3), (3,), (3, 3), (1, 3), (6,)))
        case _:
            return mode, ()


class _Room:
    """Cards by what is left of them, so that the best fit is found without looking at all."""

    def __init__(self, nodes: int) -> None:
        self.used = 0
        self._held: list[tuple[str, list[int]]] = [(FREE, []) for _ in range(nodes * CARDS)]
        self._free = list(reversed(range(nodes * CARDS)))
        self._left: dict[tuple[str, int], list[int]] = {}
        self._jobs: list[tuple[int, int]] = []

    def place(self, mode: str, slices: int) -> None:
        """Put a job on the card in its mode with the least left that fits, else on a free one."""
        card, left = self._take(mode, slices)
        self._held[card] = (mode, [*self._held[card][1], slices])
        self._jobs.append((card, slices))
        self.used += slices
        if left > slices:
            self._left.setdefault((mode, left - slices), []).append(card)

    def end_any(self, draw: random.Random) -> None:
        """A job ends; nothing is placed after that."""
        number = draw.randrange(len(self._jobs))
        self._jobs[number], self._jobs[-1] = self._jobs[-1], self._jobs[number]
        card, slices = self._jobs.pop()
        mode, held = self._held[card]
        held.remove(slices)
        self._held[card] = (mode if held else FREE, held)
        self.used -= slices

    def cards_of(self, node: int) -> Sequence[tuple[str, list[int]]]:
        return self._held[node * CARDS : (node + 1) * CARDS]

    def _take(self, mode: str, slices: int) -> tuple[int, int]:
        for left in range(slices, SLICES):
            if cards := self._left.get((mode, left)):
                return cards.pop(), left
        return self._free.pop(), SLICES
