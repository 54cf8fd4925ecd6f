"""Cards near each other, on the machine of the vendor's manual: controller, device plugin and
scheduler extender take the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import parse_claim
from dra_driver.agent.slices.device_layout import card_devices
from dra_driver.config.card_rules import CardConfig
from dra_driver.device_plugin.inventory import NodeDevices, inventories
from dra_driver.device_plugin.node_annotations import node_cards
from dra_driver.device_plugin.preference import prefer_whole
from dra_driver.model.card import Card
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.node.checkpoint.ledger import Ledger
from tests.unit.controller.allocator import build as cluster
from tests.unit.controller.extender import build as extender
from tests.unit.hardware.doctored import inventory, simulated

Take = Callable[[Sequence[Card], Collection[int], int], list[int]]
"""Cards, which of them are free, how many are asked → which are taken; numbered as the manual
numbers them."""


def by_controller(cards: Sequence[Card], free: Collection[int], count: int) -> list[int]:
    devices = [d for card in cards for d in card_devices(card, CardConfig(), None, "controller")]
    used = [f"whole-{card.address.slug}" for card in cards if card.minor not in free]
    state = cluster.state(cluster.pool("n", devices), [cluster.allocated("u", "n", *used)])
    asked = parse_claim(cluster.claim("c", [cluster.request(count=count)]), state.classes)
    found = allocate(state, [asked], state.numbers.bit("n"))
    assert isinstance(found, Allocation)
    taken = {grant.device.card for grant in found.assignments[0]}
    return [card.minor for card in cards if (pool_name("n"), str(card.address)) in taken]


def by_device_plugin(cards: Sequence[Card], free: Collection[int], count: int) -> list[int]:
    view = _view(cards)
    ids = [str(PluginDevice(each.address, Mode.WHOLE, 0)) for each in cards if each.minor in free]
    found = prefer_whole(view.cards or {}, inventories(view, Mode.WHOLE), ids, [], count)
    taken = {PluginDevice.parse(each).card for each in found}
    return [card.minor for card in cards if card.address in taken]


def by_extender(cards: Sequence[Card], free: Collection[int], count: int) -> list[int]:
    used = [str(card.address) for card in cards if card.minor not in free]
    holder = extender.pod("u", {extender.WHOLE: len(used)}, on="n", cards=",".join(used))
    node = extender.node("n", *node_cards(_view(cards), ()))
    view = extender.view(node, *([holder] if used else []))
    taken = extender.placed(view, extender.pod("p", {extender.WHOLE: count})).cards
    return [card.minor for card in cards if card.address in taken]


def _view(cards: Sequence[Card]) -> NodeDevices:
    return NodeDevices(
        cards={card.address: card for card in cards},
        ledger=Ledger(),
        offer=lambda _: CardConfig(),
        table=lambda _: None,
    )


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Card, ...]:
    return inventory(simulated(tmp_path_factory.mktemp("m"), "s60-ecc-8-nested")).cards


def test_the_switch_of_a_card_is_its_own(cards: Sequence[Card]) -> None:
    """Whether or not another card is on it."""
    switches = [
        card_devices(card, CardConfig(), None, "controller")[0]["attributes"]["pcieSwitch"][
            "string"
        ]
        for card in cards
    ]
    assert switches == [
        f"0000:{bus}:00.0" for bus in ("0f", "0f", "13", "16", "9a", "9a", "9e", "a2")
    ]


@pytest.mark.parametrize("take", [by_controller, by_device_plugin, by_extender])
@pytest.mark.parametrize(
    ("counts", "taken"),
    [
        ((1, 1, 1), [[2], [3], [6]]),
        ((2, 2, 2, 2), [[0, 1], [4, 5], [2, 3], [6, 7]]),
        ((3, 3), [[0, 1, 2], [4, 5, 6]]),
        ((4, 2, 2), [[0, 1, 2, 3], [4, 5], [6, 7]]),
        ((2, 3, 2), [[0, 1], [4, 5, 6], [2, 3]]),
        ((5, 2), [[0, 1, 2, 3, 6], [4, 5]]),
        ((8,), [[0, 1, 2, 3, 4, 5, 6, 7]]),
    ],
    ids=["1", "2", "3", "4, then 2", "3 after 2", "5", "8"],
)
def test_cards_are_taken_by_the_lowest_bridge_that_they_have_in_common(
    cards: Sequence[Card], take: Take, counts: Sequence[int], taken: list[list[int]]
) -> None:
    free = set(range(8))
    found = []
    for count in counts:
        found.append(take(cards, free, count))
        free.difference_update(found[-1])
    assert found == taken
