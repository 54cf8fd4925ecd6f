"""What people are told of cards, in the log and as events, from one look at them to the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from dra_driver.agent.events import (
    CARD_BACK,
    CARD_CHANGED,
    CARD_ERRORS,
    CARD_HEALTHY,
    CARD_LOST,
    CARD_UNHEALTHY,
    CARD_UNUSABLE,
    EventReporter,
)
from dra_driver.model.card import Card, Problem
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress

logger = logging.getLogger(__name__)

_ERRORS_EVERY: Final = 600.0  # seconds between two words on the error records of one card

Cards = Mapping[PciAddress, Card]


@dataclass(frozen=True, slots=True)
class _Errors:
    """The count of error records that was told, and when."""

    count: int
    at: float


class CardEvents:
    """Tells each change once; what is as it was before is told nobody."""

    def __init__(
        self, event_reporter: EventReporter, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` is monotonic seconds."""
        self._event_reporter = event_reporter
        self._clock = clock
        self._errors: dict[PciAddress, _Errors] = {}
        self._unusable: Mapping[PciAddress, str] = {}

    def emit(self, before: Cards, after: Cards, unusable: Mapping[PciAddress, str]) -> None:
        """`before` is what was known; `unusable` says why cards are not among those `after`."""
        for card in after.values():
            was = before.get(card.address)
            self._tell_presence(was, card)
            self._tell_health(was, card)
            self._tell_errors(card)
            if was is not None:
                self._tell_change(was, card)
        for address, reason in unusable.items():
            if self._unusable.get(address) != reason:
                self._warn(CARD_UNUSABLE, f"card {address} is not published: {reason}")
        self._unusable = dict(unusable)

    def _tell_presence(self, was: Card | None, card: Card) -> None:
        lost, lost_before = _lost(card), was and _lost(was)
        if lost and not lost_before:
            self._warn(CARD_LOST, f"card {card.address}: {lost.text}")
        if lost_before and not lost:
            self._inform(CARD_BACK, f"card {card.address} is back")

    def _tell_health(self, was: Card | None, card: Card) -> None:
        ills = _ills(card)
        ills_before = _ills(was) if was is not None else {}
        if ills.keys() - ills_before.keys():
            self._warn(CARD_UNHEALTHY, f"card {card.address}: {'; '.join(ills.values())}")
        if ills_before and not ills:
            self._inform(CARD_HEALTHY, f"card {card.address} is healthy again")

    def _tell_errors(self, card: Card) -> None:
        """Counts may grow at each look, so the growth of a while is told in one."""
        if card.errors is None:
            return
        told = self._errors.get(card.address)
        if told is None or card.errors < told.count:  # the first look, or a count that was reset
            self._errors[card.address] = _Errors(card.errors, -inf)
            return
        now = self._clock()
        if card.errors > told.count and now - told.at >= _ERRORS_EVERY:
            text = f"error records grew from {told.count} to {card.errors}"
            self._warn(CARD_ERRORS, f"card {card.address}: {text} (`efsmi -q`, Error Records)")
            self._errors[card.address] = _Errors(card.errors, now)

    def _tell_change(self, was: Card, card: Card) -> None:
        if was.uuid != card.uuid:
            text = f"{was.model} {was.uuid} was replaced by {card.model} {card.uuid}"
            self._inform(CARD_CHANGED, f"card {card.address}: {text}")
        elif was.ecc is not None and card.ecc is not None and was.ecc.current != card.ecc.current:
            text = f"ECC is {'on' if card.ecc.current else 'off'} now, with {card.memory_mib} MiB"
            self._inform(CARD_CHANGED, f"card {card.address}: {text}")

    def _warn(self, reason: str, note: str) -> None:
        logger.warning("%s", note)
        self._event_reporter.warning(reason, note)

    def _inform(self, reason: str, note: str) -> None:
        logger.info("%s", note)
        self._event_reporter.normal(reason, note)


def _lost(card: Card) -> Problem | None:
    return next((problem for problem in card.problems if problem.value == "lost"), None)


def _ills(card: Card) -> dict[str, str]:
    """What is wrong with the card itself: the text of each problem, by its taint's value."""
    return {
        problem.value: problem.text
        for problem in card.problems
        if problem.taint == TAINT_UNHEALTHY and problem.value != "lost"
    }
