"""Which devices the kubelet is told of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.allocator import planned_devices
from dra_driver.device_plugin.inventory import inventories
from dra_driver.kubelet_api.device_plugin.service import ListedDevice
from dra_driver.model.card import Card, Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN, TAINT_UNHEALTHY
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.node.checkpoint.records import PreparedDevice
from tests.unit.device_plugin.test_node_annotations import view
from tests.unit.node.world import CARDS, POOL, card, hold

WHOLE, SHARED, DRS = Mode.WHOLE, Mode.SHARED, Mode.DRS
TABLE = ProfileTable.of([Profile("1g.11gb", 0, 4, 11000, 6), Profile("2g.22gb", 1, 2, 22000, 12)])
CLAIM = ClaimRef("team", "claim", "uid-claim")
LOST = Problem(TAINT_UNHEALTHY, "lost", "gone from the PCI bus")
FOREIGN = Problem(TAINT_FOREIGN, "", "DRS instances without a record of this agent")


@dataclass
class Node:
    """Two cards, and who holds what of them."""

    cards: dict[int, Card] | None = field(
        default_factory=lambda: {n: card(CARDS[n], n) for n in (0, 1)}
    )
    holders: list[tuple[Owner, tuple[PreparedDevice, ...]]] = field(default_factory=list)
    offer: CardConfig = field(default_factory=CardConfig)
    table: ProfileTable | None = TABLE
    active: bool = True
    failing: frozenset[str] = frozenset()

    def give(self, card: int, mode: Mode, *ordinals: int, total: int) -> None:
        devices = tuple(PluginDevice(CARDS[card], mode, each) for each in ordinals)
        grant = ContainerAllocation(devices, total, "")
        self.holders.append((grant, planned_devices(grant, POOL)))

    def afflict(self, card: int, problem: Problem) -> None:
        assert self.cards is not None
        self.cards[card] = replace(self.cards[card], problems=(problem,))

    def listed(self, mode: Mode) -> list[tuple[str, ListedDevice]]:
        """Card and ordinal of each device, and the device."""
        cards = (self.cards or {}).values()
        seen = view(
            *self.holders, cards=cards, offer=self.offer, table=self.table, active=self.active
        )
        known = None if self.cards is None else seen.cards
        found = []
        for each in inventories(replace(seen, cards=known, failing=self.failing), mode):
            for device in each.listed():
                parsed = PluginDevice.parse(device.id)
                assert parsed.mode is mode
                found.append((f"{CARDS.index(parsed.card)}.{parsed.ordinal}", device))
        return found

    def told(self, mode: Mode) -> list[str]:
        """The names, with ``!`` before those that are unhealthy."""
        return [name if each.healthy else f"!{name}" for name, each in self.listed(mode)]


def names(card: int, count: int) -> list[str]:
    return [f"{card}.{ordinal}" for ordinal in range(count)]


def nothing(node: Node) -> None:
    """Two free cards."""


def a_slice(node: Node) -> None:
    node.give(0, SHARED, 2, total=6)


def an_instance(node: Node) -> None:
    node.give(0, DRS, 0, 1, total=4)


def a_card(node: Node) -> None:
    node.give(0, WHOLE, 0, total=1)


def a_claim(node: Node) -> None:
    node.holders.append((CLAIM, (hold(0, mode=SHARED, consumed={"slices": "1"}),)))


@pytest.mark.parametrize(
    ("held", "whole", "shared", "drs"),
    [
        (nothing, [0, 1], [0, 1], [0, 1]),
        (a_slice, [1], [0, 1], [1]),
        (an_instance, [1], [1], [0, 1]),
        (a_card, [0, 1], [1], [1]),
        (a_claim, [1], [1], [1]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_kinds_of_a_card_go_together(
    held: Callable[[Node], None], whole: list[int], shared: list[int], drs: list[int]
) -> None:
    node = Node()
    held(node)
    assert node.told(WHOLE) == [each for card in whole for each in names(card, 1)]
    assert node.told(SHARED) == [each for card in shared for each in names(card, 6)]
    assert node.told(DRS) == [each for card in drs for each in names(card, 4)]


def test_another_slice_count_is_for_free_cards() -> None:
    node = Node()
    a_slice(node)
    node.offer = CardConfig(slice_count=3)
    assert node.told(SHARED) == [*names(0, 6), *names(1, 3)]
    node.holders.clear()
    assert node.told(SHARED) == [*names(0, 3), *names(1, 3)]


def test_a_mode_that_is_no_longer_offered_keeps_what_is_held() -> None:
    node = Node()
    a_slice(node)
    node.offer = CardConfig(modes=frozenset({WHOLE}))
    assert (node.told(SHARED), node.told(WHOLE), node.told(DRS)) == (["0.2"], ["1.0"], [])


def test_unknown_profiles_offer_nothing() -> None:
    node = Node()
    an_instance(node)
    node.table = None
    assert node.told(DRS) == ["0.0", "0.1"]


def test_a_node_that_serves_by_dra_keeps_what_is_held() -> None:
    node = Node(active=False)
    a_slice(node)
    assert (node.told(SHARED), node.told(WHOLE), node.told(DRS)) == (["0.2"], [], [])


@pytest.mark.parametrize("mode", list(Mode))
def test_a_sick_card_is_sick_in_every_mode(mode: Mode) -> None:
    node = Node()
    node.afflict(0, LOST)
    healthy = Node().told(mode)
    assert node.told(mode) == [f"!{name}" if name[0] == "0" else name for name in healthy]


def test_a_sick_card_is_sick_for_who_has_it() -> None:
    node = Node()
    a_slice(node)
    node.afflict(0, LOST)
    assert node.told(SHARED)[:6] == [f"!{name}" for name in names(0, 6)]


def test_what_somebody_else_does_concerns_new_containers_only() -> None:
    node = Node()
    a_slice(node)
    node.afflict(0, FOREIGN)
    assert node.told(SHARED)[:4] == ["!0.0", "!0.1", "0.2", "!0.3"]


def test_where_nothing_can_be_made_nothing_new_is_given_out() -> None:
    """Binpack would choose the same card again and again."""
    node = Node(failing=frozenset({"drs-0000-0d-00-0"}))
    an_instance(node)
    assert node.told(DRS)[:4] == ["0.0", "0.1", "!0.2", "!0.3"]
    node.holders.clear()
    assert node.told(SHARED)[:6] == names(0, 6)


@pytest.mark.parametrize("mode", list(Mode))
def test_each_device_tells_the_numa_node_of_its_card(mode: Mode) -> None:
    """By which the topology manager aligns cards with CPUs."""
    node = Node()
    assert node.cards is not None
    for place, numa in enumerate((1, None)):
        node.cards[place] = replace(node.cards[place], numa_node=numa)
    node.give(0, mode, 0, total=1)
    told = {(name[0], each.numa_node) for name, each in node.listed(mode)}
    assert told == {("0", 1), ("1", None)}
    node.cards = None
    assert {each.numa_node for _, each in node.listed(mode)} == {None}


def test_a_held_card_that_was_never_found_is_lost() -> None:
    node = Node(cards={1: card(CARDS[1], 1)})
    a_slice(node)
    assert node.told(SHARED) == ["!0.2", *names(1, 6)]


def test_before_the_hardware_is_read_what_is_held_is_not_said_to_be_sick() -> None:
    node = Node(cards=None)
    a_slice(node)
    assert (node.told(SHARED), node.told(WHOLE)) == (["0.2"], [])
