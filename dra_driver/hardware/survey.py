"""What efsmi says of the node's cards: of all at once, or of each by itself.

A call of all cards does not end when one of them hangs, and may fail when one is broken. Then each
card is asked by its index, beside the others, and only those that do not answer are not known.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dra_driver.hardware.efsmi import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.hardware.join import Joined, by_address
from dra_driver.hardware.listing import ListedCard, parse_list
from dra_driver.hardware.query import QueriedCard, parse_query, parse_query_json
from dra_driver.hardware.summary import SummaryRow, parse_summary
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress

logger = logging.getLogger(__name__)

Queried = tuple[QueriedCard, ...]
Answer = tuple[Queried, tuple[ListedCard, ...]] | HardwareError


@dataclass(frozen=True, slots=True)
class Survey:
    """`rows` of the summary tell the modes; None where each card was asked by itself, as the
    summary is of all cards. `silent` says why efsmi does not answer for a card."""

    joined: Joined
    rows: tuple[SummaryRow, ...] | None
    silent: Mapping[PciAddress, str] = field(default_factory=dict)


class Surveyor:
    """Asks efsmi. What it keeps between two surveys says only how to ask: the index that each card
    had, and whether it is of use to ask for all at once."""

    def __init__(self, efsmi: Efsmi) -> None:
        self._efsmi = efsmi
        self._indexes: dict[PciAddress, int] = {}
        self._apart = False

    def survey(self, cards: Collection[PciAddress]) -> Survey:
        """Ask for `cards`, those on the PCI bus; there is at least one.

        Raises HardwareError where efsmi answers for none of them, or for each but not for all.
        """
        failures: list[HardwareError] = []
        if not self._apart:
            try:
                return self._keep(self._at_once())
            except (EfsmiHung, EfsmiFailed) as error:
                failures.append(error)
        survey, errors = self._one_by_one(cards)
        apart, self._apart = self._apart, 0 < len(survey.silent) < len(cards)
        if self._apart:
            if not apart:
                logger.warning("each card is asked by itself for now: %s", failures[0])
            return self._keep(survey)
        if survey.silent:  # all of them: it is the tool
            nobody = HardwareError("efsmi answers for no card")
            raise next(iter([*failures, *errors]), nobody)
        if failures:
            raise failures[0]
        logger.info("every card answers again")
        return self._keep(self._at_once())

    def _keep(self, survey: Survey) -> Survey:
        self._indexes |= {address: card.index for address, card in survey.joined.cards.items()}
        return survey

    def _at_once(self) -> Survey:
        queried = self._query()
        rows = parse_summary(self._efsmi.summary())
        return Survey(by_address(queried, self._listed(queried)), rows)

    def _one_by_one(
        self, cards: Collection[PciAddress]
    ) -> tuple[Survey, Collection[HardwareError]]:
        """Also the errors, of cards or of indexes that are none's."""
        known = {address: self._indexes[address] for address in cards if address in self._indexes}
        # Indexes count the cards from 0 on; a card that is gone may have left a gap.
        indexes = sorted({*range(len(cards)), *known.values()})
        answers = self._ask_each(indexes)
        errors = {at: each for at, each in answers.items() if isinstance(each, HardwareError)}
        found = [each for each in answers.values() if not isinstance(each, HardwareError)]
        joined = by_address(
            [card for queried, _ in found for card in queried],
            [row for _, listed in found for row in listed],
        )
        silent = {
            address: _reason(errors, known.get(address))
            for address in cards
            if address not in joined.cards and address not in joined.refused
        }
        return Survey(joined, None, silent), errors.values()

    def _ask_each(self, indexes: Iterable[int]) -> dict[int, Answer]:
        answers: dict[int, Answer] = {}

        def ask(index: int) -> None:
            answers[index] = self._ask(index)

        # Not a pool's threads: the end of the program would wait for a card that hangs.
        threads = [
            threading.Thread(target=ask, args=(index,), name=f"efsmi-{index}", daemon=True)
            for index in indexes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def _ask(self, index: int) -> Answer:
        try:
            queried = self._query(index)
            return queried, self._listed(queried, index)
        except HardwareError as error:
            return error

    def _query(self, index: int | None = None) -> Queried:
        """From JSON where the tool knows it and it tells all that is needed, else from text."""
        try:
            cards = parse_query_json(self._efsmi.query_json(index))
        except EfsmiFailed as error:
            logger.debug("reading text instead of JSON: %s", error)
            cards = None
        if cards is not None and all(card.complete for card in cards):
            return cards
        return parse_query(self._efsmi.query(index))

    def _listed(
        self, queried: Iterable[QueriedCard], index: int | None = None
    ) -> tuple[ListedCard, ...]:
        """The rows of ``-L``, asked only where ``-q`` left an address open."""
        if all(card.address is not None for card in queried):
            return ()
        try:
            return parse_list(self._efsmi.list_cards(index))
        except HardwareError as error:
            # It can only add to what is known: the other cards are told already.
            logger.warning("cards without an address in `efsmi -q` stay unknown: %s", error)
            return ()


def _reason(errors: Mapping[int, HardwareError], index: int | None) -> str:
    """Why efsmi does not answer for the card that had this index; None where that is unknown."""
    if index is not None and index in errors:
        return str(errors[index])
    return "; ".join(sorted({str(error) for error in errors.values()})) or "efsmi does not list it"
