"""docs/user/why-is-my-claim-pending.md explains what the controller says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.controller.allocator.test_counters import CASES as COUNTERS
from tests.unit.controller.allocator.test_reasons import REASONS
from tests.unit.controller.allocator.test_request_forms import CASES as FORMS

PAGE = Path(__file__).parents[4] / "docs" / "user" / "why-is-my-claim-pending.md"
TOLD = "\n".join(str(case[-1]) for cases in (REASONS, FORMS, COUNTERS) for case in cases.values())
PHRASES = (
    " held",
    "held as a whole",
    "in shared mode",
    "in DRS mode",
    "with fewer than",
    "without a free slice",
    "of size free",
    "too small",
    ", no card has more than",
    "which no card has",
    "a card that is too small has",
    "with counters, which only kube-scheduler allocates",
    "unhealthy",
    "still held by a deleted claim",
    "tainted",
    "none selected by DeviceClass",
    "the profiles of cards are",
    "these cards are offered as",
    "on one node)",
    "with the same",
    "but not all requests fit together",
    "but not together",
    "all requested",
    "all requested, and a claim can hold 32",
    "no ResourceSlice of gcu.enflame.com is published",
    "nodes that fit the pod publishes a device",
    "is incomplete",
    "is invalid",
    "cannot be evaluated",
)


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_is_said_and_explained(phrase: str) -> None:
    assert phrase in TOLD
    assert phrase in PAGE.read_text(encoding="utf-8")
