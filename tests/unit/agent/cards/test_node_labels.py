"""Labels of a Node by its cards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dra_driver.agent.cards.node_labels import card_labels, node_labels
from dra_driver.model.card import Card
from tests.unit.node.world import CARDS, card

S60 = card(CARDS[0], 0)


def changed(**fields: Any) -> Card:
    return replace(card(CARDS[1], 1), **fields)


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        pytest.param((), {}, id="no cards"),
        pytest.param(
            (S60, changed()),
            {"model.S60": "true", "count": "2", "memory-mib": "42976", "driver-version": "1.4.0"},
            id="alike",
        ),
        pytest.param(
            (S60, changed(model="L600", memory_mib=1024)),
            {
                "model.L600": "true",
                "model.S60": "true",
                "count": "2",
                "memory-mib": "1024",
                "driver-version": "1.4.0",
            },
            id="two models",
        ),
        pytest.param(
            (changed(model="S60 (new)", driver_version="1.4 beta"),),
            {"count": "1", "memory-mib": "42976"},
            id="what cannot be a label",
        ),
        pytest.param(
            (changed(model="M" * 58),),
            {"count": "1", "memory-mib": "42976", "driver-version": "1.4.0"},
            id="a model that is too long",
        ),
    ],
)
def test_labels(cards: tuple[Card, ...], expected: dict[str, str]) -> None:
    assert card_labels(cards) == {
        f"gcu.enflame.com/{name}": value for name, value in expected.items()
    }


def test_nothing_is_written_before_the_cards_are_known() -> None:
    assert node_labels(None) is None
    assert node_labels({S60.address: S60}) == {"labels": card_labels((S60,))}
