"""Sums over nodes, whatever was counted before, and whichever nodes are asked about."""

from __future__ import annotations

import random
from collections import Counter

from controller.allocator.changes import Changed
from controller.allocator.demand import demand
from controller.allocator.inventory import Inventory
from controller.allocator.tally import Tallies, Tally
from dra_driver.model.packing import PackingChoice
from tests.unit.controller.allocator.build import device, pool

NODES = [f"n{number}" for number in range(12)]
ASKED = demand((), 1, (), "[]", admin_access=False, packing=PackingChoice())


def tally(draw: random.Random) -> Tally:
    """One of few, so that nodes have equal ones and some that differ in one figure only."""
    words = Counter({"held": draw.randint(0, 1), "unhealthy": draw.randint(0, 1)})
    error = draw.choice(("", "no such key: speed"))
    return Tally(words, draw.randint(0, 1), Counter({"whole": draw.randint(1, 2)}), error)


def test_as_added_up_node_by_node() -> None:
    draw = random.Random(0)
    inventory = Inventory.of(each for name in NODES for each in pool(name, [device("whole", 0)]))
    inventory.settle()
    tallies = Tallies(inventory)
    known = {name: tally(draw) for name in NODES}
    for _ in range(200):
        changed = draw.sample(NODES, draw.randint(0, 3))
        known |= {name: tally(draw) for name in changed}
        tallies.forget(Changed(frozenset(), frozenset(changed)))
        asked = draw.sample([*NODES, "elsewhere"], draw.randint(1, 13))
        nodes = draw.choice((asked, frozenset(asked)))
        found = tallies.total(ASKED, nodes, known.__getitem__)
        some = [known[name] for name in NODES if name in nodes]
        assert +found.words == sum((each.words for each in some), Counter())
        assert +found.types == sum((each.types for each in some), Counter())
        assert +found.free == Counter(each.free for each in some)
        assert +found.errors == Counter(each.error for each in some if each.error)
