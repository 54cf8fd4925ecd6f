"""Which devices are preferred."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_driver.device_plugin.inventory import CardInventory
from dra_driver.device_plugin.preference import prefer_share, prefer_whole
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from tests.unit.node.world import card

CARDS = tuple(PciAddress.parse(f"0000:{bus:02x}:00.0") for bus in range(8))


def inventories(*held: int, mode: Mode = Mode.SHARED, **changes: bool) -> list[CardInventory]:
    """Cards of six, of which so many are held, by ordinal."""
    return [
        CardInventory(
            card=CARDS[at],
            mode=mode,
            total=6 if mode is not Mode.WHOLE else 1,
            held=frozenset(range(count)),
            offered=changes.get("offered", True),
            blocked=changes.get("blocked", False),
            unhealthy=changes.get("sick", False),
            numa_node=None,
        )
        for at, count in enumerate(held)
    ]


def ids(card: int, *ordinals: int, mode: Mode = Mode.SHARED) -> list[str]:
    return [f"{CARDS[card]}/{mode.value}/{each}" for each in ordinals]


def available(cards: list[CardInventory]) -> list[str]:
    return [
        f"{each.card}/{each.mode.value}/{ordinal}"
        for each in cards
        for ordinal in range(each.total)
        if ordinal not in each.held
    ]


@pytest.mark.parametrize(
    ("held", "size", "expected"),
    [
        ((0, 3, 4), 2, ids(2, 4, 5)),
        ((0, 3, 4), 3, ids(1, 3, 4, 5)),
        ((0, 3, 4), 4, ids(0, 0, 1, 2, 3)),
        ((3, 3), 2, ids(0, 3, 4)),
        ((4, 4), 3, []),
        ((6, 6), 1, []),
    ],
    ids=["the fullest", "that fits", "a free one last", "the first of equals", "none", "all full"],
)
def test_best_fit(held: tuple[int, ...], size: int, expected: list[str]) -> None:
    cards = inventories(*held)
    assert prefer_share(cards, available(cards), [], size) == expected


def test_only_of_what_the_kubelet_has() -> None:
    cards = inventories(0, 0)
    assert prefer_share(cards, ids(1, 2, 4), [], 2) == ids(1, 2, 4)
    assert prefer_share(cards, [*ids(0, 1), *ids(1, 2)], [], 2) == []
    assert prefer_share(cards, ["unknown"], [], 1) == []


@pytest.mark.parametrize(
    ("held", "size", "expected"),
    [
        ((6, 1), 6, ids(0, 0, 1, 2, 3, 4, 5)),
        ((6, 1), 5, ids(1, 1, 2, 3, 4, 5)),
    ],
    ids=["where nothing else fits", "after one that has room"],
)
def test_a_card_that_the_kubelet_alone_counts_as_free(
    held: tuple[int, ...], size: int, expected: list[str]
) -> None:
    """Its container has just ended, or was never started as we were killed; the kubelet would take
    devices of several cards if nothing were preferred, and the pod would fail."""
    cards = inventories(*held, mode=Mode.SHARED)
    kubelet = [*ids(0, *range(6)), *ids(1, *range(1, 6))]
    assert prefer_share(cards, kubelet, [], size) == expected


@pytest.mark.parametrize("reason", ["sick", "blocked"])
def test_not_where_nothing_can_be_given_out(reason: str) -> None:
    cards = inventories(0, sick=reason == "sick", blocked=reason == "blocked")
    assert prefer_share(cards, available(cards), [], 1) == []


def test_beside_what_an_init_container_had() -> None:
    cards = inventories(5, 1)
    free = [*available(cards), *ids(1, 0)]
    assert prefer_share(cards, free, ids(1, 0), 2) == ids(1, 0, 1)
    assert prefer_share(cards, free, ids(1, 0), 7) == []


# A machine of eight: switches of two, NUMA nodes of four.
MACHINE = {
    address: replace(
        card(address, at),
        numa_node=at // 4,
        pcie_root=f"pci0000:{at // 2}0",
        pcie_bridges=(f"0000:{at // 2}0:01.0", f"0000:{at // 2}1:00.0", f"0000:{at // 2}2:0{at}.0"),
    )
    for at, address in enumerate(CARDS)
}


@pytest.mark.parametrize(
    ("free", "size", "expected"),
    [
        (range(8), 2, [0, 1]),
        (range(1, 8), 2, [2, 3]),
        (range(1, 8), 1, [1]),
        (range(8), 4, [0, 1, 2, 3]),
        ((1, 2, 3, 4, 5, 6, 7), 3, [1, 2, 3]),
        ((1, 3, 4, 6), 2, [1, 3]),
        ((1, 4, 5, 6), 2, [4, 5]),
        ((0, 4, 5, 6, 7), 5, [0, 4, 5, 6, 7]),
        (range(8), 8, [0, 1, 2, 3, 4, 5, 6, 7]),
        ((1, 2), 3, None),
    ],
    ids=[
        "one switch",
        "an unbroken switch",
        "the switch with the fewest left",
        "one NUMA node",
        "the NUMA node with the fewest left",
        "one NUMA node, two switches",
        "a switch before a NUMA node",
        "two NUMA nodes",
        "all",
        "not as many",
    ],
)
def test_whole_cards_are_close_to_each_other(
    free: range | tuple[int, ...], size: int, expected: list[int] | None
) -> None:
    cards = inventories(*([0] * 8), mode=Mode.WHOLE)
    offered = [ids(at, 0, mode=Mode.WHOLE)[0] for at in free]
    found = prefer_whole(MACHINE, cards, offered, [], size)
    assert found == [ids(at, 0, mode=Mode.WHOLE)[0] for at in expected or ()]


def test_whole_cards_beside_that_of_an_init_container() -> None:
    cards = inventories(*([0] * 8), mode=Mode.WHOLE)
    offered = [ids(at, 0, mode=Mode.WHOLE)[0] for at in range(8)]
    [kept] = ids(5, 0, mode=Mode.WHOLE)
    found = prefer_whole(MACHINE, cards, offered, [kept], 3)
    assert found == [kept, *(ids(at, 0, mode=Mode.WHOLE)[0] for at in (6, 7))]
