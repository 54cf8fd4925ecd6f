"""The measurement of bursts: what is asked, what others would grant, and how it is summed up."""

from __future__ import annotations

from random import Random

import pytest

from bench.bursts import Row, figures, granted_with_dra
from dra_driver.model.mode import Mode
from tests.e2e.bursts import Outcome, Request, mixed

DRS_6, SHARED_1, WHOLE = Request(Mode.DRS, 6), Request(Mode.SHARED, 1), Request(Mode.WHOLE)


@pytest.mark.parametrize(
    ("requests", "granted"),
    [
        ([WHOLE] * 12, 72),
        ([WHOLE] * 13, 72),
        ([SHARED_1] * 100, 72),
        ([*[DRS_6] * 11, SHARED_1, WHOLE], 67),
    ],
    ids=["all cards", "one more", "slices", "a card in another mode"],
)
def test_the_allocator_has_the_same_twelve_cards(requests: list[Request], granted: int) -> None:
    assert granted_with_dra(requests) == granted


def test_bursts_ask_for_more_than_there_is() -> None:
    asked = [sum(each.slices for each in mixed(Random(seed))) for seed in range(1, 21)]
    assert min(asked) > 72
    assert 1.2 < sum(asked) / (20 * 72) < 1.4


def test_all_bursts_are_summed_up() -> None:
    rows = [
        Row(1, 80, Outcome(40, (), 0, 10, 72, 30.0), dra=71, most=72),
        Row(2, 90, Outcome(38, ("no room",), 1, 10, 70, 50.0), dra=72, most=72),
    ]
    found = figures(rows, 100)
    assert (found["running"], found["not_admitted"], found["not_admitted_rate"]) == (78, 1, 0.01)
    assert (found["failed"], found["seconds"]) == (1, 40.0)
    assert (found["slices_granted"], found["slices_granted_with_dra"]) == (142, 143)
    assert (found["packed"], found["packed_with_dra"]) == (0.9861, 0.9931)
