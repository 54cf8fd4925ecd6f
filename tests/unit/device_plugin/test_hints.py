"""For which cards pods were placed, and that it is followed where it can be."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dra_driver.device_plugin.preference import (
    Hint,
    find_hints,
    is_requested,
    prefer_share,
    prefer_whole,
)
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from tests.unit.device_plugin.plugin_world import waiting_pod
from tests.unit.device_plugin.test_preference import CARDS, MACHINE, available, ids, inventories

DRS = RESOURCES[Mode.DRS]


pod = partial(waiting_pod, resource=DRS)


def recorded(name: str, container: str, *devices: str) -> Recorded:
    return Recorded(f"uid-{name}", container, DRS, frozenset(devices))


ONE, TWO = map(str, CARDS[:2])


@pytest.mark.parametrize(
    ("pods", "served", "hinted"),
    [
        ([pod("a", ONE, 3)], [], [(ONE, 3)]),
        ([pod("a", ONE, 1)], [], []),
        ([pod("a", ONE, 3)], [recorded("a", "c0", *ids(0, 0, 1, 2, mode=Mode.DRS))], []),
        (
            [pod("b", TWO, 3), pod("a", ONE, 3, 3)],
            [recorded("a", "c0", *ids(0, 0, 1, 2, mode=Mode.DRS))],
            [(ONE, 3), (TWO, 3)],
        ),
        (
            [pod("a", ONE, 1, 3)],
            [recorded("a", "c0", *ids(1, 0, mode=Mode.DRS))],
            [(TWO, 3), (ONE, 3)],
        ),
        ([pod("a", ONE, 3, 1)], [recorded("a", "c0", *ids(0, 0, 1, 2, mode=Mode.DRS))], []),
        ([pod("a", ONE, 3, 1)], [], [(ONE, 4)]),
        ([pod("b", TWO, 3), pod("a", ONE, 3)], [], [(TWO, 3), (ONE, 3)]),
        ([pod("a", "nonsense", 3), pod("b", TWO, 3)], [], [(TWO, 3)]),
        ([pod("a", "", 3)], [], []),
        ([pod("a", ONE, "three")], [], []),
        ([pod("a", ONE, 3)], [recorded("a", "other", "of-another-plugin")], [(ONE, 3)]),
        (
            [pod("a", ONE, 1, initContainers=[{"name": "i", "resources": {"limits": {DRS: 3}}}])],
            [],
            [(ONE, 3)],
        ),
    ],
    ids=[
        "a pod",
        "another size",
        "that has it",
        "one that is being taken on first",
        "a second container, beside the first",
        "a second container of another size",
        "with room for the others",
        "in their order",
        "an annotation that is none",
        "an empty one",
        "a limit that is none",
        "devices of another plugin",
        "an init container",
    ],
)
def test_the_cards_of_pods_that_wait(
    pods: list[Any], served: list[Recorded], hinted: list[tuple[str, int]]
) -> None:
    found = find_hints(pods, served, Mode.DRS, 3)
    assert [(str(card), hint.needed) for hint in found for card in hint.cards] == hinted


@pytest.mark.parametrize(
    ("pods", "served", "found"),
    [
        ([], [], False),
        ([pod("a", "", 1, 3)], [], True),
        ([pod("a", ONE, 1)], [], False),
        ([pod("a", ONE, 3)], [recorded("a", "c0", *ids(0, 0, 1, 2, mode=Mode.DRS))], False),
        ([pod("a", ONE, 3)], [recorded("b", "c0", *ids(0, 0, 1, 2, mode=Mode.DRS))], True),
    ],
    ids=["no pod", "one without a hint", "of another size", "that has it", "another one has it"],
)
def test_whether_a_pod_is_known_for_what_the_kubelet_asks(
    pods: list[Any], served: list[Recorded], found: bool
) -> None:
    assert is_requested(pods, served, Mode.DRS, 3) == found


@pytest.mark.parametrize(
    ("hinted", "expected"),
    [
        ([], ids(1, 4, 5)),
        ([(0, 2)], ids(0, 0, 1)),
        ([(2, 2), (0, 2)], ids(0, 0, 1)),
        ([(0, 2), (1, 2)], ids(0, 0, 1)),
        ([(1, 3)], ids(0, 0, 1)),
        ([(1, 3), (1, 2)], ids(1, 4, 5)),
    ],
    ids=[
        "none",
        "a hint",
        "one that does not fit",
        "the first",
        "where the pod's later containers have room, too",
        "another pod's that needs less",
    ],
)
def test_a_share_where_it_was_meant(hinted: list[tuple[int, int]], expected: list[str]) -> None:
    cards = inventories(0, 4, 6)
    meant = [Hint((CARDS[at],), needed) for at, needed in hinted]
    assert prefer_share(cards, available(cards), [], 2, hints=meant) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [((0, 2, 4), ids(1, 2, 3)), ((0, 5, 3), ids(2, 3, 4)), ((3, 5, 5), ids(0, 3, 4))],
    ids=["beside its other containers", "where it was meant", "elsewhere"],
)
def test_a_share_on_the_first_card_of_a_hint_with_room(
    used: tuple[int, ...], expected: list[str]
) -> None:
    cards = inventories(*used)
    hint = Hint((CARDS[1], CARDS[2]), 2)
    assert prefer_share(cards, available(cards), [], 2, hints=[hint]) == expected


@pytest.mark.parametrize(
    ("hint", "expected"),
    [((1, 6), (1, 6)), ((1,), (4, 5)), ((1, 7), (4, 5)), ((7, 1, 6), (1, 6))],
    ids=["a hint", "of fewer", "of one that is in use", "of more, for several containers"],
)
def test_whole_cards_where_they_were_meant(
    hint: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    cards = inventories(*([0] * 7), mode=Mode.WHOLE)
    found = prefer_whole(
        MACHINE, cards, available(cards), [], 2, hints=[Hint([CARDS[at] for at in hint], 2)]
    )
    assert found == [ids(at, 0, mode=Mode.WHOLE)[0] for at in expected]
