"""Which cards `make bench-cluster` has in use before it measures."""

from __future__ import annotations

import pytest

from bench.fleet import CARDS, SLICES
from bench.prefill import Use, free_cards, uses

_NODES = 20


def cards(found: list[Use]) -> dict[int, list[int]]:
    """By card the slices of its claims."""
    by_card: dict[int, list[int]] = {}
    for use in found:
        by_card.setdefault(use.card, []).append(use.slices)
    return by_card


@pytest.mark.parametrize("full", [0.0, 0.5, 0.9, 1.0])
def test_that_share_of_all_cards_is_in_use_half_of_them_whole(full: float) -> None:
    by_node = [cards(uses(node, full)) for node in range(_NODES)]
    in_use = [amounts for here in by_node for amounts in here.values()]
    whole = sum(amounts == [0] for amounts in in_use)
    assert len(in_use) == round(_NODES * CARDS * full)
    assert abs(2 * whole - len(in_use)) <= 1
    assert free_cards(_NODES, full) == _NODES * CARDS - len(in_use)


def test_a_card_is_whole_or_all_of_its_slices_are_in_use() -> None:
    for node in range(_NODES):
        for amounts in cards(uses(node, 0.9)).values():
            assert amounts == [0] or sum(amounts) == SLICES


def test_claims_have_names_of_their_own() -> None:
    names = [use.name for node in range(_NODES) for use in uses(node, 1.0)]
    assert len(names) == len(set(names))
