"""For which cards pods were placed, and that it is followed where it can be."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.device_plugin.hints import hinted_cards
from dra_driver.device_plugin.preference import prefer_share, prefer_whole
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.model.plugin_device import RESOURCES
from tests.unit.device_plugin.test_preference import CARDS, MACHINE, available, ids, stocks

DRS = RESOURCES[Mode.DRS]


def pod(name: str, cards: str, *limits: int | str, made: str = "2026-01-01", **more: Any) -> Any:
    """Its containers c0, c1, … with that limit of DRS size each."""
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": made,
            "annotations": {"gcu.enflame.com/assigned-cards": cards},
        },
        "spec": {
            "containers": [
                {"name": f"c{at}", "resources": {"limits": {DRS: limit}}}
                for at, limit in enumerate(limits)
            ],
            **more,
        },
    }


def recorded(name: str, container: str) -> Recorded:
    return Recorded(f"uid-{name}", container, DRS, frozenset())


ONE, TWO = map(str, CARDS[:2])


@pytest.mark.parametrize(
    ("pods", "served", "hinted"),
    [
        ([pod("a", ONE, 3)], [], [ONE]),
        ([pod("a", ONE, 1)], [], []),
        ([pod("a", ONE, 3)], [recorded("a", "c0")], []),
        ([pod("a", ONE, 3, 3)], [recorded("a", "c0")], [ONE]),
        ([pod("a", ONE, 3, 1)], [recorded("a", "c0")], []),
        ([pod("b", TWO, 3, made="2026-01-02"), pod("a", ONE, 3)], [], [ONE, TWO]),
        ([pod("a", "nonsense", 3), pod("b", TWO, 3)], [], [TWO]),
        ([pod("a", "", 3)], [], []),
        ([pod("a", ONE, "three")], [], []),
        (
            [pod("a", ONE, initContainers=[{"name": "i", "resources": {"limits": {DRS: 3}}}])],
            [],
            [ONE],
        ),
    ],
    ids=[
        "a pod",
        "another size",
        "that has it",
        "a second container",
        "a second container of another size",
        "the older one first",
        "an annotation that is none",
        "an empty one",
        "a limit that is none",
        "an init container",
    ],
)
def test_the_cards_of_pods_that_wait(
    pods: list[Any], served: list[Recorded], hinted: list[str]
) -> None:
    found = hinted_cards(pods, served, Mode.DRS, 3)
    assert [str(card) for cards in found for card in cards] == hinted


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ([], ids(1, 4, 5)),
        ([(CARDS[0],)], ids(0, 0, 1)),
        ([(CARDS[2],), (CARDS[0],)], ids(0, 0, 1)),
        ([(CARDS[0],), (CARDS[1],)], ids(0, 0, 1)),
    ],
    ids=["none", "a hint", "one that does not fit", "the first"],
)
def test_a_share_where_it_was_meant(
    hints: list[tuple[PciAddress, ...]], expected: list[str]
) -> None:
    cards = stocks(0, 4, 6)
    assert prefer_share(cards, available(cards), [], 2, hints=hints) == expected


@pytest.mark.parametrize(
    ("hint", "expected"),
    [((1, 6), (1, 6)), ((1,), (0, 1)), ((1, 7), (0, 1))],
    ids=["a hint", "of another number", "of one that is in use"],
)
def test_whole_cards_where_they_were_meant(
    hint: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    cards = stocks(*([0] * 7), mode=Mode.WHOLE)
    found = prefer_whole(
        MACHINE, cards, available(cards), [], 2, hints=[tuple(CARDS[at] for at in hint)]
    )
    assert found == [ids(at, 0, mode=Mode.WHOLE)[0] for at in expected]
