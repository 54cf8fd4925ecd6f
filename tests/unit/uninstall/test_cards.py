"""Which cards pods by limits have, from Nodes as the API server has them."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.pci import PciAddress
from dra_driver.uninstall.check import card_line, cards_in_use

SHARED = NodeCard(
    PciAddress(0, 1, 0, 0),
    index=0,
    minor=0,
    slices=6,
    mode=Mode.SHARED,
    held=(Hold("uid-b", "main", 2), Hold("uid-a", "main", 1), Hold("uid-b", "side", 1)),
)
FREE = NodeCard(PciAddress(0, 2, 0, 0), index=1, minor=1, slices=6)
EMPTYING = NodeCard(PciAddress(0, 3, 0, 0), index=2, minor=2, total=6, mode=Mode.DRS)
STARTING = NodeCard(
    PciAddress(0, 4, 0, 0), index=3, minor=3, mode=Mode.WHOLE, held=(Hold("", "", 1),)
)
NAMES = {"uid-a": "pod default/a", "uid-b": "pod team/b"}


def node(name: str, *cards: NodeCard) -> Object:
    return {"metadata": {"name": name, "annotations": {ANNOTATION_CARDS: render_cards(cards)}}}


def test_cards_in_use_are_listed_with_their_pods() -> None:
    found = cards_in_use(
        [node("b", EMPTYING, FREE, STARTING), node("a", SHARED), {"metadata": {"name": "c"}}]
    )
    assert [card_line(name, card, NAMES) for name, card in found] == [
        "node a: card 0000:01:00.0, shared, used by pod default/a, pod team/b",
        "node b: card 0000:03:00.0, drs, used by no pod any more",
        "node b: card 0000:04:00.0, whole, used by a pod that has just started or ended",
    ]


def test_what_cannot_be_read_is_not_taken_for_nothing() -> None:
    told = {"metadata": {"name": "a", "annotations": {ANNOTATION_CARDS: "{"}}}
    with pytest.raises(InvalidValue, match="cannot be read"):
        cards_in_use([told])
