"""Why nothing was allocated, in the words that reach the event on the claim and on the pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from controller.allocator.claim_request import MOST_RESULTS, ClaimRequest, ExactRequest
from controller.allocator.device_request import DeviceRequest, Shortfall
from controller.allocator.nodes.node_set import NodeCounter, NodeSet, numbers
from controller.allocator.nodes.signature import CardFit, CardSignature, Feasibility
from controller.allocator.state import SignatureIndex, State
from dra_driver.config.device_config import ISOLATION_OF_MODE
from dra_driver.model.claims.measures import CORES
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ATTR_PROFILES,
    ATTR_TYPE,
    CAPACITY_SLICES,
    CLASS_DRS,
    DRIVER,
    TAINT_HELD,
    TAINT_UNHEALTHY,
)
from dra_driver.selector.allowance import AllowanceSpent
from dra_driver.selector.selector import Selectors

TAINT_WORDS: Final = {
    TAINT_UNHEALTHY: "unhealthy",
    TAINT_HELD: "still held by a deleted claim",
}
MODE_WORDS: Final = {"whole": "held as a whole", "shared": "in shared mode", "drs": "in DRS mode"}


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

    def __init__(self, device_request: DeviceRequest) -> None:
        super().__init__()
        self.groups: defaultdict[CardWords, list[CardSignature]] = defaultdict(list)
        self.own: list[CardSignature] = []
        self._device_request = device_request

    def _examine(self, signature: CardSignature, selectors: Selectors) -> None:
        fit = signature.fit(self._device_request, selectors)
        if fit is None:
            self.own.append(signature)
        else:
            self.groups[_card_words(self._device_request, signature, fit)].append(signature)


@dataclass(slots=True)
class Diagnosis:
    """About the cards of some nodes: the words and types of their selected devices, and what those
    that are too small lack. Of all `devices`, `free` ones are on `nodes` nodes, at `most` so many
    on one."""

    words: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    shortfalls: set[Shortfall] = field(default_factory=set)
    error: str = ""
    devices: int = 0
    free: int = 0
    most: int = 0
    nodes: int = 0

    def add(self, found: CardWords, cards: int) -> None:
        """So many cards about which that is said."""
        for word, kind in found.devices:
            self.words[word] += cards
            self.types[kind] += cards
        self.shortfalls.update(found.shortfalls)
        self.devices += found.all * cards
        self.free += found.free * cards
        if found.error:
            self.error = min(self.error or found.error, found.error)


def diagnose(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet, stopped: str) -> str:
    """One sentence about all requests over all candidate `nodes`; `stopped` is empty unless the
    search came to its bound. If the decision's allowance ends, it is about those requests that were
    counted before."""
    problems = state.inventory.problems.values()
    if problems and not len(state.fleet):
        return "; ".join(problems)
    return "; ".join(filter(None, (_reasons(state, wanted, nodes), *problems, stopped)))


def diagnose_nodes(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet) -> dict[str, str]:
    """By node, what `diagnose` says about it alone; nodes of a kind share one text. A node without
    devices has the problem of its pools instead, if they have one."""
    reasons: dict[str, str] = {}
    for alike in _alike(state, wanted, nodes & state.fleet.all_nodes):
        reason = _reasons(state, wanted, alike & -alike)
        reasons |= dict.fromkeys(state.numbers.names(alike), reason)
    if bare := nodes & ~state.fleet.all_nodes:
        problems, reason = state.inventory.problems, _reasons(state, wanted, bare & -bare)
        reasons |= {name: problems.get(name, reason) for name in state.numbers.names(bare)}
    return reasons


def count_words(state: State, asked: DeviceRequest, nodes: NodeSet) -> Counter[str]:
    """How many cards `diagnose` would call free, held, unhealthy, …"""
    return _count(state, asked, nodes).words


def _alike(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet) -> list[NodeSet]:
    """The `nodes`, which have devices, in parts of nodes about which the same is said."""
    parts = [nodes] if nodes else []
    device_requests = [
        exact.device_request
        for each in wanted
        for exact in each.exact_requests()
        if not exact.of_others
    ]
    for device_request in dict.fromkeys(device_requests):
        by_words = state.index(CardsByWords, device_request)
        if any(map(state.fleet.nodes_with, by_words.own)):
            parts = [1 << number for part in parts for number in numbers(part)]
        for signatures in by_words.groups.values():
            counter = NodeCounter(n for each in signatures for n in state.fleet.with_cards[each])
            parts = [half for part in parts for half in counter.split(part)]
    return parts


def _reasons(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet) -> str:
    reasons: list[str] = []
    try:
        reasons.extend(_about_requests(state, wanted, nodes))
    except AllowanceSpent:
        reasons.append("to find out more would take too long")
    return "; ".join(reasons)


def _about_requests(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet) -> Iterator[str]:
    if not len(state.fleet):
        yield f"no ResourceSlice of {DRIVER} is published"
        return
    if not nodes & state.fleet.all_nodes:
        yield (
            f"none of the {nodes.bit_count()} nodes that fit the pod publishes a device of {DRIVER}"
        )
        return
    asked = [(claim, exact) for claim in wanted for exact in claim.exact_requests()]
    requests = [(claim, exact) for claim, exact in asked if not exact.of_others]
    for claim, exact in requests:
        several = len(requests) > 1
        prefix = f"claim {claim.ref.name}, request {exact.name}: " if several else ""
        yield prefix + _about(state, claim, exact, nodes, several=several)
    others = [f"{claim.ref.name}/{exact.name}" for claim, exact in asked if exact.of_others]
    if others and all(_is_free_somewhere(state, exact, nodes) for _, exact in requests):
        yield f"not on one node with what is asked of other drivers ({', '.join(others)})"


def _is_free_somewhere(state: State, exact: ExactRequest, nodes: NodeSet) -> bool:
    most = _count(state, exact.device_request, nodes).most
    return most >= (exact.device_request.count or 1)


def _about(
    state: State, wanted: ClaimRequest, exact: ExactRequest, nodes: NodeSet, *, several: bool
) -> str:
    diagnosis = _count(state, exact.device_request, nodes)
    selected = diagnosis.words.total()
    if not selected:
        return diagnosis.error or (
            f"{_plural(diagnosis.devices, 'device')}, none selected by DeviceClass "
            f"{exact.class_name} and the request; {_asked(exact)}{_profiles(state, exact, nodes)}"
            f"{_offered(state, nodes)}"
        )
    parts = [f"{n} {word}" for word, n in sorted(diagnosis.words.items(), key=_by_count)]
    text = f"{_plural(selected, _noun(diagnosis.types))}: {', '.join(parts)}"
    text += _why_not_free(wanted, exact, diagnosis, several=several)
    text += "".join(_shortfalls(exact, diagnosis))
    return f"{text}; {diagnosis.error}" if diagnosis.error else text


def _count(state: State, device_request: DeviceRequest, nodes: NodeSet) -> Diagnosis:
    fleet, by_words = state.fleet, state.index(CardsByWords, device_request)
    if any(nodes & fleet.nodes_with(signature) for signature in by_words.own):
        return _count_by_card(state, device_request, nodes)
    diagnosis, free = Diagnosis(), NodeCounter()
    cards = fleet.count_cards(nodes)
    for words, signatures in by_words.groups.items():
        count = sum([cards[signature] for signature in signatures])
        if count:
            diagnosis.add(words, count)
            having = [n for signature in signatures for n in fleet.with_cards[signature]]
            for with_cards in having * words.free:
                free.add(nodes & with_cards)
    diagnosis.nodes = free.at_least(1).bit_count()
    diagnosis.most = free.most()
    return diagnosis


def _count_by_card(state: State, device_request: DeviceRequest, nodes: NodeSet) -> Diagnosis:
    """The same, card by card, as a selector reads what is a card's own."""
    diagnosis = Diagnosis()
    for number in numbers(nodes & state.fleet.all_nodes):
        before = diagnosis.free
        for card in state.fleet.at(number).cards:
            state.selectors.allowance.check()
            fit = card.signature.fit_of(device_request, card.devices, state.selectors)
            diagnosis.add(_card_words(device_request, card.signature, fit), 1)
        diagnosis.most = max(diagnosis.most, diagnosis.free - before)
        diagnosis.nodes += diagnosis.free > before
    return diagnosis


def _profiles(state: State, exact: ExactRequest, nodes: NodeSet) -> str:
    """What the sizes of instances could be: a limit's size is that of a profile."""
    if exact.class_name != CLASS_DRS:
        return ""
    words = " or ".join(sorted(attribute_texts(state, nodes, ATTR_PROFILES)))
    return f"; the profiles of cards are {words}" if words else ""


def _offered(state: State, nodes: NodeSet) -> str:
    """In which modes alone, where the rules of the cards leave out others: which isolation they
    stand for is what a claim may have asked for."""
    modes = [mode for mode in Mode if mode in attribute_texts(state, nodes, ATTR_TYPE)]
    if not modes or len(modes) == len(Mode):
        return ""
    words = (
        f"{mode} (isolation {ISOLATION_OF_MODE[mode]})" if mode in ISOLATION_OF_MODE else mode
        for mode in modes
    )
    return f"; these cards are offered as {' and '.join(words)} only"


def attribute_texts(state: State, nodes: NodeSet, attribute: str) -> set[str]:
    """The values of an attribute of the devices on these nodes."""
    return {
        kind.text(attribute)
        for each, cards in state.fleet.count_cards(nodes).items()
        if cards
        for kind in each.kinds
    } - {""}


def _why_not_free(
    wanted: ClaimRequest, exact: ExactRequest, found: Diagnosis, *, several: bool
) -> str:
    asked = _asked(exact)
    if found.most < (exact.device_request.count or 1):
        return f" (at most {found.most} on one node); {asked}" if found.nodes > 1 else f"; {asked}"
    if exact.device_request.count is None:
        if found.words.total() > found.free:
            return f"; {asked}"
        if found.most > MOST_RESULTS:
            return f"; {asked}, and a claim can hold {MOST_RESULTS}"
    constraints = [each.words for each in wanted.constraints if each.applies(exact.name)]
    if constraints:
        return f"; {asked} {' and '.join(constraints)}"
    if several:
        return f"; {asked}, but not all requests fit together"
    return f"; {asked}, but not together" if found.most > 1 else f"; {asked}"


def _shortfalls(exact: ExactRequest, found: Diagnosis) -> Iterator[str]:
    """What was asked, and the most that the cards that are too small could give."""
    noun = _noun(found.types)
    texts = exact.device_request.texts
    for name in sorted({each.name for each in found.shortfalls}):
        asked = f"; asks for {_amount(name, texts[name])}, "
        amount = exact.device_request.capacity.get(name)
        if amount is not None and amount.value < 0:
            yield f"{asked}which is negative"
            continue
        known = [
            each.most for each in found.shortfalls if each.name == name and each.most is not None
        ]
        most = max(known, key=lambda amount: amount.value, default=None)
        if found.words[Feasibility.TOO_SMALL] < found.words.total():
            has = "none" if most is None else f"at most {most.text}"
            yield f"{asked}a {noun} that is too small has {has}"
        elif most is None:
            yield f"{asked}which no {noun} has"
        else:
            yield f"{asked}no {noun} has more than {most.text}"


def _amount(name: str, text: str) -> str:
    if name == CAPACITY_SLICES:
        return "1 slice" if text == "1" else f"{text} slices"
    return f"{text} % of the cores" if name == CORES else f"{text} of {name}"


def _asked(exact: ExactRequest) -> str:
    return (
        f"{'all' if exact.device_request.count is None else exact.device_request.count} requested"
    )


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _noun(types: Counter[str]) -> str:
    """A request that is served by one type of device sees one device of each card."""
    kinds = {kind for kind, count in types.items() if count}
    return "card" if len(kinds) == 1 and kinds <= MODE_WORDS.keys() else "device"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _card_words(device_request: DeviceRequest, card: CardSignature, fit: CardFit) -> CardWords:
    results = {index: card.feasibility(device_request, index) for index in fit.selected}
    small = [index for index, result in results.items() if result is Feasibility.TOO_SMALL]
    return CardWords(
        tuple(
            (_word(result, device_request, card, index), card.kinds[index].text(ATTR_TYPE))
            for index, result in results.items()
        ),
        tuple(chain.from_iterable(device_request.shortfalls(card.kinds[index]) for index in small)),
        len(fit.free),
        len(card.kinds),
        fit.error,
    )


def _word(
    result: Feasibility, device_request: DeviceRequest, card: CardSignature, index: int
) -> str:
    if result is Feasibility.EXCLUDED:
        return MODE_WORDS.get(card.holder(index), "whose card is held")
    if result not in {Feasibility.FULL, Feasibility.TAINTED}:
        return str(result)
    capacity_fit, use = device_request.capacity_fit(card.kinds[index]), card.uses[index]
    assert capacity_fit is not None  # or it would be too small
    if result is Feasibility.TAINTED:
        keys = {taint.key for taint in capacity_fit.taints}
        if known := [word for key, word in TAINT_WORDS.items() if key in keys]:
            return known[0]
        first = capacity_fit.taints[0]
        return f"tainted {first.key}" + (f" by DeviceTaintRule {first.rule}" if first.rule else "")
    assert use is not None  # or it would have room
    name = next(
        n for n, amount, all_ in capacity_fit.amounts if use.consumed.get(n, 0) + amount > all_
    )
    text = capacity_fit.consumed[name].text
    if name == CAPACITY_SLICES:
        return "without a free slice" if text == "1" else f"with fewer than {text} free slices"
    return f"with less than {text} of {name} free"
