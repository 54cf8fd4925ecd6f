"""What efsmi says of the node's cards: of all at once, or of each by itself.

A call of all cards does not end when one of them hangs, and may fail when one is broken. Then each
card is asked by its index, beside the others, and only those that do not answer are not known.
These calls start before the call of all has timed out: an agent that starts serves nothing until
its first look, and the kubelet deletes its slices after 30 s.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from dra_driver.hardware.efsmi.join import EfsmiUnclear, Survey, by_address, located
from dra_driver.hardware.efsmi.listing import parse_list
from dra_driver.hardware.efsmi.query import QueriedCard, parse_query, parse_query_json
from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.hardware.efsmi.summary import parse_summary
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

logger = logging.getLogger(__name__)

Queried = Sequence[QueriedCard]
Answers = dict[int, Queried | HardwareError]
"""By the index that was asked for."""


class Surveyor:
    """Asks efsmi. What it keeps between two surveys is the index that each card had. After
    `patience` seconds without an answer for all of them, each card is asked beside it."""

    def __init__(self, efsmi: Efsmi, *, patience: float) -> None:
        self._efsmi = efsmi
        self._patience = patience
        self._indexes: dict[PciAddress, int] = {}
        self._is_apart = False  # for the log alone
        # Parsing takes up to 40 times the memory of the text, and each card may print its own.
        self._parsing = threading.Lock()

    def survey(self, cards: Collection[PciAddress]) -> Survey:
        """Ask for `cards`, those on the PCI bus; there is at least one.

        Raises HardwareError if the call for all of them fails, and efsmi answers for no card or for
        every card by itself: then it is the tool.
        """
        answers: Answers = {}
        ask_each = partial(self._ask_each, self._probable(cards), answers)
        beside = threading.Timer(self._patience, ask_each)
        beside.name, beside.daemon = "efsmi-each", True
        beside.start()
        try:
            survey = self._at_once()
            if self._is_apart:
                logger.info("every card answers again")
            self._is_apart = False
            return self._keep(survey)
        except (EfsmiHung, EfsmiFailed) as error:
            failure = error
        finally:
            beside.cancel()
        beside.join()
        if not answers:
            ask_each()
        survey = self._one_by_one(cards, answers)
        silent = [each for each in survey.failures.values() if not isinstance(each, EfsmiUnclear)]
        if not 0 < len(silent) < len(cards):
            raise failure
        if not self._is_apart:
            logger.warning("each card is asked by itself for now: %s", failure)
        self._is_apart = True
        return self._keep(survey)

    def _keep(self, survey: Survey) -> Survey:
        self._indexes |= {address: card.index for address, card in survey.cards.items()}
        return survey

    def _at_once(self) -> Survey:
        queried = self._query()
        return replace(by_address(queried), rows=parse_summary(self._efsmi.run()))

    def _probable(self, cards: Collection[PciAddress]) -> list[int]:
        """The indexes that the cards may have."""
        known = {self._indexes[address] for address in cards if address in self._indexes}
        # Indexes count the cards from 0 on; a card that is gone may have left a gap.
        return sorted({*range(len(cards)), *known})

    def _one_by_one(self, cards: Collection[PciAddress], answers: Answers) -> Survey:
        found = [each for each in answers.values() if not isinstance(each, HardwareError)]
        survey = by_address([card for queried in found for card in queried])
        for address in cards:
            if address not in survey.cards and address not in survey.failures:
                survey.failures[address] = _silence(answers, self._indexes.get(address))
        return survey

    def _ask_each(self, indexes: Iterable[int], answers: Answers) -> None:
        def ask(index: int) -> None:
            try:
                answers[index] = self._query(index)
            except HardwareError as error:
                answers[index] = error

        # Not a pool's threads: the end of the program would wait for a card that hangs.
        threads = [
            threading.Thread(target=ask, args=(index,), name=f"efsmi-{index}", daemon=True)
            for index in indexes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _query(self, index: int | None = None) -> Queried:
        """Where ``-q`` leaves an address open, that of ``-L`` is taken."""
        queried = self._queried(index)
        if all(card.address is not None for card in queried):
            return queried
        try:
            listed = parse_list(self._efsmi.run(*_of(index), "-L"))
        except HardwareError as error:
            # It only adds addresses that are missing: all other cards are known already.
            logger.warning("cards without an address in `efsmi -q` stay unknown: %s", error)
            return queried
        return [located(card, listed) for card in queried]

    def _queried(self, index: int | None) -> Queried:
        """From JSON where the tool knows it and it tells all that is needed, else from text."""
        try:
            text = self._efsmi.run(*_of(index), "-q", "--json-format")
            with self._parsing:
                cards = parse_query_json(text)
            if cards is not None and all(card.complete for card in cards):
                return cards
        except EfsmiFailed as error:
            logger.debug("reading text instead of JSON: %s", error)
        text = self._efsmi.run(*_of(index), "-q")
        with self._parsing:
            return parse_query(text)


def _of(index: int | None) -> tuple[str, ...]:
    return () if index is None else ("-i", str(index))


def _silence(answers: Answers, index: int | None) -> EfsmiHung | EfsmiFailed:
    """Why efsmi does not answer for the card that had this index. If its index is not known (None),
    all errors are why: each may be this card's."""
    errors = {at: each for at, each in answers.items() if isinstance(each, HardwareError)}
    own = [errors[index]] if index in errors else errors.values()
    kind = EfsmiHung if any(isinstance(each, EfsmiHung) for each in own) else EfsmiFailed
    return kind("; ".join(sorted(set(map(str, own)))) or "efsmi does not list it")
