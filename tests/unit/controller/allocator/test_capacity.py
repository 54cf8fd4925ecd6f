"""What a request consumes, as upstream's consumable capacity defines it."""

from __future__ import annotations

import pytest

from controller.allocator.capacity import Amount, Capacity
from dra_driver.model.claims.claim import Object

SLICES = {
    "value": "6",
    "requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "6", "step": "1"}},
}
SIZES = {"value": "6", "requestPolicy": {"default": "1", "validValues": ["1", "3", "6"]}}
PLAIN = {"value": "40Gi"}
STEPPED = {
    "value": "40Gi",
    "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "32Gi", "step": "2Gi"}},
}
NO_STEP = {"value": "6", "requestPolicy": {"default": "2", "validRange": {"min": "2"}}}
ODD_DEFAULT = {
    "value": "9",
    "requestPolicy": {"default": "9", "validRange": {"min": "1", "max": "4"}},
}
NO_DEFAULT = {"value": "9", "requestPolicy": {"validRange": {"min": "1", "max": "4"}}}


@pytest.mark.parametrize(
    ("entry", "asked", "consumed"),
    [
        pytest.param(SLICES, None, "1", id="range: nothing asked takes the default"),
        pytest.param(SLICES, "3", "3", id="range: within"),
        pytest.param(SLICES, "500m", "1", id="range: below the least"),
        pytest.param(SLICES, "2500m", "3", id="range: rounded up to a step"),
        pytest.param(SLICES, "7", None, id="range: above the most"),
        pytest.param(STEPPED, "2Gi", "3Gi", id="range: a step counts from the least"),
        pytest.param(STEPPED, "32Gi", None, id="range: rounded above the most"),
        pytest.param(NO_STEP, "3500m", "3500m", id="range: without a step nothing is rounded"),
        pytest.param(NO_STEP, "1", "2", id="range: without a most"),
        pytest.param(ODD_DEFAULT, "9", "9", id="the default is always allowed"),
        pytest.param(ODD_DEFAULT, "5", None, id="beside the default the range holds"),
        pytest.param(SIZES, None, "1", id="values: nothing asked takes the default"),
        pytest.param(SIZES, "2", "3", id="values: rounded up to the next"),
        pytest.param(SIZES, "6", "6", id="values: the largest"),
        pytest.param(SIZES, "7", None, id="values: above the largest"),
        pytest.param(NO_DEFAULT, None, None, id="all of it is more than the policy allows"),
        pytest.param(PLAIN, None, "40Gi", id="no policy: nothing asked takes all"),
        pytest.param(PLAIN, "10Gi", "10Gi", id="no policy: what is asked"),
        pytest.param(PLAIN, "0", "0", id="no policy: nothing"),
        pytest.param(PLAIN, "-5", None, id="no policy: a negative amount"),
        pytest.param(SLICES, "-5", "1", id="range: a negative amount is below the least"),
        pytest.param(SIZES, "-5", "1", id="values: a negative amount is below the least"),
    ],
)
def test_consumed(entry: Object, asked: str | None, consumed: str | None) -> None:
    found = Capacity.parse(entry).consumed(None if asked is None else Amount.parse(asked))
    assert (None if found is None else found.text) == consumed


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (6, "6"), (1024, "1Ki"), (3 * 1024**3, "3Gi"), (1025, "1025")]
)
def test_rounded_amounts_are_written_as_upstream_writes_them(value: int, text: str) -> None:
    assert Amount.whole(value).text == text
