"""Labels of a Node by its cards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from dra_driver.agent.cards.node_labels import card_labels, node_labeller
from dra_driver.kube.api import Api
from dra_driver.model.card import Card, Cards
from dra_driver.model.claims.claim import Object
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
    written: list[Object] = []
    found: list[Cards | None] = [None]

    class Server:
        def patch(self, _resource: object, name: str, body: Object, **more: Any) -> None:
            assert (name, more["subresource"], more["field_manager"]) == (
                "node-1",
                "status",
                "gcu-dra-agent-labels",
            )
            written.append(body["metadata"])

    labeller = node_labeller(
        cast("Api", Server()),
        "node-1",
        cards=lambda: found[0],
        kubelet=lambda: None,
    )
    labeller.run_once()
    assert written == []
    found[0] = {S60.address: S60}
    labeller.run_once()
    assert written == [{"name": "node-1", "labels": card_labels((S60,))}]
