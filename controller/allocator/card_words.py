"""What people are told about a card and a request that it does not serve."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Final, NamedTuple

from controller.allocator.device_request import DeviceRequest, Shortfall
from controller.allocator.matching import SignatureIndex
from controller.allocator.signature import CardFit, CardSignature, Verdict
from dra_driver.model.names import ATTR_TYPE, CAPACITY_SLICES, TAINT_UNHEALTHY
from dra_driver.selector.selector import Selectors

MODES: Final = {"whole": "held as a whole", "shared": "in shared mode", "drs": "in DRS mode"}


class CardWords(NamedTuple):
    """The word and the type of each selected device, what those that are too small lack, the
    number of free devices, and of all devices of the card; why a selector failed, if one did."""

    devices: tuple[tuple[str, str], ...]
    shortfalls: tuple[Shortfall, ...]
    free: int
    all: int
    error: str


class CardsByWords(SignatureIndex):
    """Signatures of cards by what is said about them for a request; `own` has those of which a
    selector reads what is a card's own."""

    def __init__(self, demand: DeviceRequest) -> None:
        super().__init__()
        self.groups: defaultdict[CardWords, list[CardSignature]] = defaultdict(list)
        self.own: list[CardSignature] = []
        self._demand = demand

    def _examine(self, signature: CardSignature, selectors: Selectors) -> None:
        fit = signature.fit(self._demand, selectors)
        if fit is None:
            self.own.append(signature)
        else:
            self.groups[card_words(self._demand, signature, fit)].append(signature)


def card_words(demand: DeviceRequest, card: CardSignature, fit: CardFit) -> CardWords:
    verdicts = {index: card.verdict(demand, index) for index in fit.selected}
    small = [index for index, verdict in verdicts.items() if verdict is Verdict.TOO_SMALL]
    return CardWords(
        tuple(
            (_word(verdict, demand, card, index), card.kinds[index].text(ATTR_TYPE))
            for index, verdict in verdicts.items()
        ),
        tuple(chain.from_iterable(demand.shortfalls(card.kinds[index]) for index in small)),
        len(fit.free),
        len(card.kinds),
        fit.error,
    )


def _word(verdict: Verdict, demand: DeviceRequest, card: CardSignature, index: int) -> str:
    if verdict is Verdict.EXCLUDED:
        return MODES.get(card.holder(index), "whose card is held")
    if verdict not in {Verdict.FULL, Verdict.TAINTED}:
        return str(verdict)
    offer, use = demand.offer(card.kinds[index]), card.uses[index]
    assert offer is not None  # or it would be too small
    if verdict is Verdict.TAINTED:
        if any(taint.key == TAINT_UNHEALTHY for taint in offer.taints):
            return "unhealthy"
        first = offer.taints[0]
        return f"tainted {first.key}" + (f" by DeviceTaintRule {first.rule}" if first.rule else "")
    assert use is not None  # or it would have room
    name = next(n for n, amount, all_ in offer.amounts if use.consumed.get(n, 0) + amount > all_)
    text = offer.consumed[name].text
    if name == CAPACITY_SLICES:
        return "without a free slice" if text == "1" else f"with fewer than {text} free slices"
    return f"with less than {text} of {name} free"
