"""Reports changes of the cards, in the log and as events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from math import inf
from typing import Final

import msgspec

from dra_driver.agent.events import (
    CARD_BACK,
    CARD_CHANGED,
    CARD_ERRORS,
    CARD_HEALTHY,
    CARD_LOST,
    CARD_UNHEALTHY,
    CARD_UNTRIED,
    CARD_UNUSABLE,
    EventReporter,
)
from dra_driver.hardware.seen_versions import untried
from dra_driver.model.card import Card, Cards, Problem
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.util.hooks import Clock

_ERRORS_EVERY: Final = 600.0  # seconds between two events about the error records of one card


class _ReportedErrors(msgspec.Struct, frozen=True):
    """The count of error records that was reported, and when."""

    count: int
    at: float


@dataclass(eq=False)
class CardEvents:
    """Reports each change once, and each model with its version of the vendor's driver; the latter
    not on a `simulated` machine."""

    events: EventReporter
    _: KW_ONLY
    simulated: bool = False
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self._models: set[tuple[str, str]] = set()
        self._errors: dict[PciAddress, _ReportedErrors] = {}
        self._unusable: Mapping[PciAddress, str] = {}

    def emit(self, before: Cards, after: Cards, unusable: Mapping[PciAddress, str]) -> None:
        """`before` and `after` are the known cards; `unusable` has the cards that cannot be used at
        all, each with the reason."""
        for card in after.values():
            was = before.get(card.address)
            self._report_presence(was, card)
            self._report_health(was, card)
            self._report_errors(card)
            if was is not None:
                self._report_change(was, card)
            self._report_model(card)
        for address, reason in unusable.items():
            if self._unusable.get(address) != reason:
                self.events.warning(CARD_UNUSABLE, f"card {address} is not published: {reason}")
        self._unusable = dict(unusable)

    def _report_presence(self, was: Card | None, card: Card) -> None:
        lost, lost_before = _lost(card), was and _lost(was)
        if lost and not lost_before:
            self.events.warning(CARD_LOST, f"card {card.address}: {lost.text}")
        if lost_before and not lost:
            self.events.normal(CARD_BACK, f"card {card.address} is back")

    def _report_health(self, was: Card | None, card: Card) -> None:
        unhealthy = _unhealthy(card)
        unhealthy_before = _unhealthy(was) if was is not None else {}
        if unhealthy.keys() - unhealthy_before.keys():
            self.events.warning(
                CARD_UNHEALTHY, f"card {card.address}: {'; '.join(unhealthy.values())}"
            )
        # The former problems of a lost card may be dropped: nothing is known of it any more.
        if unhealthy_before and not unhealthy and _lost(card) is None:
            self.events.normal(CARD_HEALTHY, f"card {card.address} is healthy again")

    def _report_errors(self, card: Card) -> None:
        """The count may grow at each inventory, so one event covers the growth of ten minutes."""
        if card.errors is None:
            return
        reported = self._errors.get(card.address)
        if reported is None or card.errors < reported.count:  # new here, or the count was reset
            self._errors[card.address] = _ReportedErrors(card.errors, -inf)
            return
        now = self.clock()
        if card.errors > reported.count and now - reported.at >= _ERRORS_EVERY:
            text = f"error records grew from {reported.count} to {card.errors}"
            self.events.warning(
                CARD_ERRORS, f"card {card.address}: {text} (`efsmi -q`, Error Records)"
            )
            self._errors[card.address] = _ReportedErrors(card.errors, now)

    def _report_change(self, was: Card, card: Card) -> None:
        if was.uuid != card.uuid:
            text = f"{was.model} {was.uuid} was replaced by {card.model} {card.uuid}"
            self.events.normal(CARD_CHANGED, f"card {card.address}: {text}")
        elif was.ecc is not None and card.ecc is not None and was.ecc.current != card.ecc.current:
            text = f"ECC is {'on' if card.ecc.current else 'off'} now, with {card.memory_mib} MiB"
            self.events.normal(CARD_CHANGED, f"card {card.address}: {text}")

    def _report_model(self, card: Card) -> None:
        kind = card.model, card.driver_version
        if self.simulated or kind in self._models:
            return
        self._models.add(kind)
        note, is_warning = untried(*kind)
        if note:
            report = self.events.warning if is_warning else self.events.normal
            report(CARD_UNTRIED, note)


def _lost(card: Card) -> Problem | None:
    return next((problem for problem in card.problems if problem.value == "lost"), None)


def _unhealthy(card: Card) -> dict[str, str]:
    """The texts of the card's own problems, by the value of the taint."""
    return {
        problem.value: problem.text
        for problem in card.problems
        if problem.taint == TAINT_UNHEALTHY and problem.value != "lost"
    }
