"""Which cards pods by limits have, from Nodes as the API server has them."""

from __future__ import annotations

import pytest

from dra_driver.model.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS
from dra_driver.model.node_cards import Hold, NodeCard, render_cards
from dra_driver.model.pci import PciAddress
from dra_driver.uninstall.cards import cards_in_use

SHARED = NodeCard(
    PciAddress(0, 1, 0, 0),
    index=0,
    minor=0,
    slices=6,
    mode=Mode.SHARED,
    held=(Hold("uid-a", "main", 1), Hold("uid-b", "main", 2)),
)
FREE = NodeCard(PciAddress(0, 2, 0, 0), index=1, minor=1, slices=6)
EMPTYING = NodeCard(PciAddress(0, 3, 0, 0), index=2, minor=2, total=6, mode=Mode.DRS)


def node(name: str, *cards: NodeCard) -> Object:
    return {"metadata": {"name": name, "annotations": {ANNOTATION_CARDS: render_cards(cards)}}}


def test_cards_that_are_in_use_and_those_that_are_not_cleared_up_yet() -> None:
    found = cards_in_use(
        [node("b", EMPTYING, FREE), node("a", SHARED), {"metadata": {"name": "c"}}]
    )
    assert [str(each) for each in found] == [
        "node a: card 0000:01:00.0, shared, 2 containers",
        "node b: card 0000:03:00.0, drs, 0 containers",
    ]


def test_what_cannot_be_read_is_not_taken_for_nothing() -> None:
    told = {"metadata": {"name": "a", "annotations": {ANNOTATION_CARDS: "{"}}}
    with pytest.raises(InvalidValue, match="cannot be read"):
        cards_in_use([told])
