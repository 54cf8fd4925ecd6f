"""The fleet's sets are those of its nodes, whatever came before."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.allocated_devices import DeviceAllocation
from controller.allocator.claim_request import parse_claim
from controller.allocator.nodes.fleet import Fleet
from controller.allocator.packing.strategy import STRATEGIES
from controller.allocator.state import State
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim, pool, request, state
from tests.unit.controller.allocator.decide import MODES, SELECTORS, cards
from tests.unit.controller.allocator.test_allocated_devices import DEVICE

NODES = tuple(f"n{number:02}" for number in range(20))


def hold(draw: random.Random) -> DeviceAllocation:
    mode = draw.choice(MODES)
    name = f"{mode}-0000-{draw.randrange(5):02x}-00-0"  # of the fifth card nothing is published
    device = DEVICE._replace(pool=f"gcu.enflame.com/{draw.choice(NODES)}", name=name)
    return DeviceAllocation(device, None if mode == "whole" else {"slices": draw.randint(1, 3)})


def published(node: str, draw: random.Random) -> Object:
    return pool(node, cards(draw.randint(0, 4), *MODES))[0]


def as_counted(fleet: Fleet) -> object:
    """What the sets say, node by node."""
    found = {}
    for name in fleet.numbers.names(fleet.all_nodes):
        node = fleet.node(name)
        assert node is not None
        bit = 1 << node.number
        signatures = {
            (each.kinds, each.uses, each.vanished): sum(bool(nodes & bit) for nodes in with_cards)
            for each, with_cards in fleet.with_cards.items()
        }
        levels = [
            [level for level, nodes in sorted(index.nodes.items()) if nodes & bit]
            for index in map(fleet.levels, STRATEGIES.values())
        ]
        found[name] = (+Counter(signatures), levels)
    return found


def as_they_are(fleet: Fleet) -> object:
    found = {}
    for name in fleet.numbers.names(fleet.all_nodes):
        node = fleet.node(name)
        assert node is not None
        signatures = Counter(
            (each.signature.kinds, each.signature.uses, each.signature.vanished)
            for each in node.cards
        )
        levels = [[each.level(node.free, node.load)] for each in STRATEGIES.values()]
        found[name] = (signatures, levels)
    return found


class Changes:
    """Random ones of one state, and what is to be true after them."""

    def __init__(self, seed: int) -> None:
        self.state: State = state([], selectors=SELECTORS)
        self._draw = random.Random(seed)
        self._slices: dict[str, Object] = {}
        self._held: list[DeviceAllocation] = []

    def make(self) -> None:
        draw = self._draw
        match draw.choice(("hold", "hold", "release", "publish", "remove", "renumber")):
            case "hold":
                self._held.append(hold(draw))
                self.state.allocated.add(self._held[-1])
            case "release" if self._held:
                self.state.allocated.remove(self._held.pop(draw.randrange(len(self._held))))
            case "publish":
                node = draw.choice(NODES)
                self._slices[node] = published(node, draw)
                self.state.inventory.put(self._slices[node])
            case "remove" if self._slices:
                self.state.inventory.remove(self._slices.pop(draw.choice(sorted(self._slices))))
            case "renumber":
                for _ in range(5_000):
                    self.state.numbers.number(f"gone-{draw.random()}")
                self.state.numbers.trim(self._slices.keys())

    def fresh(self) -> State:
        found: State = state(self._slices.values(), selectors=SELECTORS)
        for each in self._held:
            found.allocated.add(each)
        return found


@pytest.mark.parametrize("seed", range(5))
def test_sets_follow_the_nodes(seed: int) -> None:
    changes = Changes(seed)
    for _ in range(200):
        changes.make()
        kept, fresh = changes.state, changes.fresh()
        kept.fleet.refresh()
        fresh.fleet.refresh()
        assert as_counted(kept.fleet) == as_they_are(kept.fleet) == as_counted(fresh.fleet)


def test_a_signature_that_was_dropped_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.allocator.nodes.fleet._FEW", 2)
    found = state(pool("a", cards(1)), selectors=SELECTORS)
    wanted = [parse_claim(claim("c", [request()]), found.classes)]
    for size in range(2, 12):  # each size of a pool has other signatures
        assert isinstance(allocate(found, wanted, found.numbers.bit("a")), Allocation)
        [slice_] = pool("a", cards(1))
        slice_["spec"]["devices"][0]["capacity"] = {"memory": {"value": f"{size}Gi"}}
        found.inventory.put(slice_)
    assert isinstance(allocate(found, wanted, found.numbers.bit("a")), Allocation)
    assert len(found.fleet.with_cards) < 6
