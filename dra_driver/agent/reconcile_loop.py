"""Looks after the node now and then: unfinished claims, foreign instances, unknown profiles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from dra_driver.agent.cards.card_cache import CardCache
from dra_driver.agent.cards.card_config import CardConfigSource
from dra_driver.agent.cards.foreign_plugin import ForeignPluginDetector
from dra_driver.agent.events import (
    CARD_FOREIGN,
    CARD_WITHOUT_DRS,
    RECOVERY_FAILED,
    EventReporter,
)
from dra_driver.kube.errors import KubeError
from dra_driver.model.card import Card, Problem
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.recovery.profile_prober import ProfileProber
from dra_driver.node.recovery.reconciler import Findings, Reconciler
from dra_driver.telemetry.logs import new_call
from dra_driver.util.background import Background, Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)


class ReconcileLoop(Background):
    """Looks every `interval` seconds, in a thread of its own, and sooner while it is unknown what
    the node's cards are offered as. `changed` is called when something that is published or told
    of a claim may have become another."""

    def __init__(
        self,
        *,
        cards: CardCache,
        card_configs: CardConfigSource,
        foreign_plugins: ForeignPluginDetector,
        reconciler: Reconciler,
        profile_prober: ProfileProber,
        event_reporter: EventReporter,
        changed: Callable[[], None],
        rebuilt: Callable[[], None],
        interval: float,
        backoff: Backoff | None = None,
        wait: Wait | None = None,
    ) -> None:
        """`rebuilt` is called when nothing is left to adopt any more. `wait(seconds)` sleeps, and
        returns True when the caretaker was stopped."""
        super().__init__("caretaker", wait=wait)
        self._cards = cards
        self._card_configs = card_configs
        self._foreign_plugins = foreign_plugins
        self._reconciler = reconciler
        self._profile_prober = profile_prober
        self._event_reporter = event_reporter
        self._changed = changed
        self._rebuilt = rebuilt
        self._interval = interval
        self._backoff = backoff or Backoff(first=1.0, longest=interval)
        self._told: dict[PciAddress, str] = {}
        self._divided: Mapping[PciAddress, Problem] = {}
        self._doubts = 0
        self._settled = 0

    @property
    def adopt(self) -> bool:
        """Whether the journal may have lost what it said of cards; see `Reconciler.run`."""
        return self._doubts != self._settled

    def mark_incomplete(self) -> None:
        """The journal may have lost something; a look that begins from now on finds it again."""
        self._doubts += 1

    def run(self) -> None:
        """The thread's work."""
        while not self._wait(self._pause()):
            try:
                self.run_once()
            except GcuError as error:
                logger.warning("the node could not be looked after: %s", error)

    def run_once(self) -> None:
        """One look. Raises JournalError."""
        with new_call("look"):
            self._refresh()
            self.detect_foreign_plugins()
            cards = self._cards.latest or ()
            doubts = self._doubts
            findings = self._reconciler.run(cards, adopt=self.adopt, hung=self._cards.hung)
            # A card that could not be seen may be one that was to be taken back; so may any where
            # something was lost while they were looked at.
            if self.adopt and doubts == self._doubts and cards and not findings.unknown:
                self._rebuilt()
                self._settled = doubts
            self._take(findings, cards)
            if self._card_configs.known:
                self._examine(cards)

    def _examine(self, cards: Sequence[Card]) -> None:
        divisible = [
            card for card in cards if Mode.DRS in self._card_configs.of(card.address).modes
        ]
        if self._profile_prober.run(divisible):
            self._changed()
        for card in divisible:
            self._tell_drs(card)

    def _refresh(self) -> None:
        try:
            self._card_configs.refresh()
        except KubeError as error:
            logger.warning("the labels of this Node cannot be read: %s", error)

    def detect_foreign_plugins(self) -> None:
        """Whether another program gives the cards to pods; a part of each look."""
        before = self._foreign_plugins.problem
        try:
            self._foreign_plugins.detect()
        except KubeError as error:
            logger.warning("whether a device plugin gives the cards out is unknown: %s", error)
        problem = self._foreign_plugins.problem
        if problem is not None and problem != before:
            logger.warning("%s", problem.text)
            self._event_reporter.warning(CARD_FOREIGN, problem.text)
        self._mark()

    def _mark(self) -> None:
        """Say of which cards others dispose; what somebody made on a card is the better reason."""
        master = self._foreign_plugins.problem
        cards = self._cards.latest or ()
        given = {card.address: master for card in cards} if master is not None else {}
        self._cards.foreign = {**given, **self._divided}

    def _take(self, findings: Findings, cards: Sequence[Card]) -> None:
        for uid, error in findings.failed.items():
            self._event_reporter.warning(RECOVERY_FAILED, f"claim with UID {uid}: {error}")
        before = self._divided
        kept = {card: before[card] for card in findings.unknown if card in before}
        indexes = {card.address: card.index for card in cards}
        for card, problem in findings.foreign.items():
            if before.get(card) != problem:
                text = f"card {card}: {problem.text}{_freeing(indexes[card])}"
                self._event_reporter.warning(CARD_FOREIGN, text)
        self._divided = kept | findings.foreign
        self._mark()
        if findings.settled:
            self._changed()

    def _tell_drs(self, card: Card) -> None:
        reason = self._profile_prober.reason(card)
        if reason is not None and self._told.get(card.address) != reason:
            note = f"card {card.address} is not offered in DRS mode: {reason}"
            self._event_reporter.normal(CARD_WITHOUT_DRS, note)
        self._told[card.address] = reason or ""

    def _pause(self) -> float:
        if self._card_configs.known:
            self._backoff.reset()
            return self._interval
        return self._backoff.next()


def _freeing(index: int) -> str:
    """What a person does with a card, efsmi's `index`, of which only a person can know that nobody
    uses what is on it."""
    tool = f"`efsmi -i {index}"
    return (
        f"; if no program uses it, free it: {tool} -L` has the ids, {tool} --drs "
        f"--destroy-instance ID` for each, then {tool} --drs off`"
    )
