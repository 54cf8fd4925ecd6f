"""The largest request of each mode that still fits."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

import pytest

from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from kubectl_gcu.inventory.views import (
    CardView,
    Holder,
    Largest,
    LargestRequests,
    NodeView,
    ServedBy,
)

FREE = CardView(PciAddress(0, 1, 0, 0), slices=6, size=6, sizes=(1, 3, 6))


def held(mode: Mode, amount: int) -> CardView:
    return replace(FREE, mode=mode, holders=(Holder(mode, amount, "n/c", ()),))


@pytest.mark.parametrize(
    ("card", "largest"),
    [
        pytest.param(FREE, (1, 6, 6), id="free"),
        pytest.param(held(Mode.SHARED, 4), (0, 2, 0), id="shared"),
        pytest.param(held(Mode.DRS, 1), (0, 0, 3), id="no instance of the size that is left"),
        pytest.param(held(Mode.DRS, 3), (0, 0, 3), id="half in DRS mode"),
        pytest.param(held(Mode.WHOLE, 1), (0, 0, 0), id="whole"),
        pytest.param(replace(FREE, problems=("lost",)), (0, 0, 0), id="unhealthy"),
        pytest.param(replace(FREE, whole=False, size=0), (0, 6, 0), id="offered as shared alone"),
        pytest.param(replace(held(Mode.DRS, 2), sizes=()), (0, 0, 4), id="sizes not published"),
    ],
)
def test_of_one_card(card: CardView, largest: tuple[int, int, int]) -> None:
    assert tuple(card.left_in(mode) for mode in (Mode.WHOLE, Mode.SHARED, Mode.DRS)) == largest


def test_whole_cards_of_one_node_count_together_and_cordoned_nodes_do_not_count() -> None:
    nodes = [
        NodeView("a", ServedBy.CLAIMS, (held(Mode.SHARED, 1), FREE)),
        NodeView("b", ServedBy.CLAIMS, (FREE, FREE, held(Mode.WHOLE, 1))),
        NodeView("c", ServedBy.CLAIMS, (FREE,) * 8, unschedulable=True),
    ]
    found = reduce(or_, map(LargestRequests.of, nodes))
    assert found == LargestRequests(Largest(2, "b"), Largest(6, "a"), Largest(6, "a"))
    assert LargestRequests.of(nodes[2]) == LargestRequests()
