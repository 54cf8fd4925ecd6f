"""Cards with slices, and the policies that ours is compared with: each is one rule for choosing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.trace import Job

SLICES = 6


@dataclass(slots=True)
class Card:
    """One card: its node and number, the mode that it is in, and what is taken of it."""

    node: int
    number: int
    mode: str = ""
    taken: int = 0

    def fits(self, job: Job) -> bool:
        return not self.taken or (self.mode == job.mode and self.taken + job.slices <= SLICES)

    def take(self, job: Job) -> None:
        self.mode = job.mode
        self.taken += job.slices

    def give_back(self, job: Job) -> None:
        self.taken -= job.slices


@dataclass(slots=True)
class Node:
    cards: list[Card]
    cpu: int = 0
    memory: int = 0

    @property
    def taken(self) -> int:
        return sum(card.taken for card in self.cards)


@dataclass(slots=True)
class Fleet:
    """Nodes of 8 cards, and what each running job has."""

    nodes: list[Node]
    draw: random.Random
    running: dict[int, tuple[Card, Job]] = field(default_factory=dict)

    @classmethod
    def of(cls, cards: int, per_node: int, draw: random.Random) -> Fleet:
        return cls(
            [
                Node([Card(node, number) for number in range(per_node)])
                for node in range(cards // per_node)
            ],
            draw,
        )

    def start(self, number: int, job: Job, choose: Choose) -> bool:
        """Whether the job got a card."""
        fitting = [card for node in self.nodes for card in node.cards if card.fits(job)]
        if not fitting:
            return False
        card = choose(self, fitting, job)
        card.take(job)
        node = self.nodes[card.node]
        node.cpu, node.memory = node.cpu + job.cpu, node.memory + job.memory
        self.running[number] = card, job
        return True

    def stop(self, number: int) -> None:
        card, job = self.running.pop(number)
        card.give_back(job)
        node = self.nodes[card.node]
        node.cpu, node.memory = node.cpu - job.cpu, node.memory - job.memory


Choose = Callable[[Fleet, Sequence[Card], Job], Card]


def first_fit(_: Fleet, fitting: Sequence[Card], __: Job) -> Card:
    return fitting[0]


def at_random(fleet: Fleet, fitting: Sequence[Card], _: Job) -> Card:
    return fleet.draw.choice(fitting)


def spread(fleet: Fleet, fitting: Sequence[Card], _: Job) -> Card:
    """The emptiest card of the emptiest node."""
    return min(fitting, key=lambda card: (fleet.nodes[card.node].taken, card.taken))


def upstream(fleet: Fleet, fitting: Sequence[Card], _: Job) -> Card:
    """kube-scheduler's order: the node with the least cpu and memory requested (LeastAllocated,
    its default), and on it the first device, modes being listed card by card."""
    return min(
        fitting,
        key=lambda card: (
            fleet.nodes[card.node].cpu / 96_000 + fleet.nodes[card.node].memory / 393_216,
            card.node,
            card.number,
        ),
    )


BASELINES: dict[str, Choose] = {
    "first_fit": first_fit,
    "spread": spread,
    "random": at_random,
    "upstream": upstream,
}
