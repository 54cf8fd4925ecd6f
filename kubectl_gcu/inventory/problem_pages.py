"""Which page says what to do about a card that takes nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_driver.model.names import (
    DRIVER,
    TAINT_CHANGING,
    TAINT_FAILING,
    TAINT_FOREIGN,
    TAINT_HELD,
    TAINT_UNHEALTHY,
)

PAGES: Final[Mapping[str, str]] = {
    TAINT_UNHEALTHY: "docs/user/health.md#what-to-do-with-an-unhealthy-card",
    TAINT_FAILING: "docs/user/health.md#when-a-device-cannot-be-prepared",
    TAINT_HELD: "docs/user/health.md#when-a-deleted-claim-still-holds-a-card",
    TAINT_FOREIGN: "docs/user/sharing.md#cards-that-others-use",
    TAINT_CHANGING: "docs/user/sharing.md#what-cards-are-offered-as",
}
"""By the taint of the card's devices."""


def page_of(problem: str) -> str:
    """The page for a problem of a `CardView`: a taint's key without its domain, and its value."""
    key = problem.partition(":")[0]
    return PAGES.get(f"{DRIVER}/{key}", PAGES[TAINT_UNHEALTHY])
