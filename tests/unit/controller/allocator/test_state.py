"""What is remembered of requests that nobody repeats is bounded."""

from __future__ import annotations

import gc

import pytest

from controller.allocator import state as state_module
from controller.allocator.nodes.signature import CardSignature
from controller.allocator.state import SignatureIndex, State
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import pool, state
from tests.unit.controller.allocator.decide import MODES, cards


class CountingIndex(SignatureIndex):
    def __init__(self, query: int) -> None:
        super().__init__()
        self.query = query
        self.examined = 0

    def _examine(self, signature: CardSignature, selectors: Selectors) -> None:
        del signature, selectors
        self.examined += 1


@pytest.fixture
def fleet_of_two_signatures() -> State:
    found = state([*pool("n1", cards(1, *MODES)), *pool("n2", cards(1, "whole"))])
    found.refresh()
    assert len(found.fleet.with_cards) == 2
    return found


def test_indexes_examine_a_bounded_number_of_signatures_together(
    fleet_of_two_signatures: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "MOST_EXAMINED", 6)
    first = fleet_of_two_signatures.index(CountingIndex, 0)
    for query in range(1, 20):
        fleet_of_two_signatures.index(CountingIndex, query)
        assert fleet_of_two_signatures.index(CountingIndex, 0) is first  # used, so it stays
    assert first.examined == 2
    alive = {each.query for each in gc.get_objects() if isinstance(each, CountingIndex)}
    assert alive == {0, 18, 19}


def test_one_index_is_always_remembered(
    fleet_of_two_signatures: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "MOST_EXAMINED", 1)
    found = fleet_of_two_signatures.index(CountingIndex, 0)
    assert fleet_of_two_signatures.index(CountingIndex, 0) is found
