"""Why nothing was allocated, in the words that reach the event on the claim and on the pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from controller.allocator.claim_request import MOST_RESULTS, ClaimRequest, ExactRequest
from controller.allocator.device_request import DeviceRequest, Shortfall
from controller.allocator.node_set import NodeSet, numbers
from controller.allocator.signature import CardFit, CardSignature, Verdict
from controller.allocator.state import State
from dra_driver.model.names import (
    ATTR_PROFILES,
    ATTR_TYPE,
    CAPACITY_SLICES,
    CLASS_DRS,
    DRIVER,
    TAINT_UNHEALTHY,
)
from dra_driver.selector.allowance import AllowanceSpent

_MODES = {"whole": "held as a whole", "shared": "in shared mode", "drs": "in DRS mode"}


@dataclass(slots=True)
class Diagnosis:
    """Of some nodes: how many of their devices that are selected stand how to a demand, in words;
    their types, and what those that are too small have too little of. `free` devices are on
    `nodes` nodes, at `most` so many on one."""

    words: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    shortfalls: Counter[Shortfall] = field(default_factory=Counter)
    error: str = ""
    too_small: int = 0
    free: int = 0
    most: int = 0
    nodes: int = 0


def diagnose(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet, stopped: str) -> str:
    """One sentence about all requests over all candidate `nodes`; `stopped` is empty unless the
    search came to its bound. Where the decision's allowance ends, it is about those requests that
    were counted by then."""
    reasons: list[str] = []
    try:
        reasons.extend(_about_requests(state, wanted, nodes))
    except AllowanceSpent:
        reasons.append("to find out more would take too long")
    reasons += [*state.inventory.problems.values(), stopped]
    return "; ".join(filter(None, reasons))


def diagnose_nodes(
    state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet
) -> Iterator[tuple[NodeSet, str]]:
    """What `diagnose` says of each of the nodes alone, with all nodes of which it says that."""
    groups = [nodes & state.fleet.everywhere]
    for each in wanted:
        for request in each.requests:
            for exact in request.alternatives:
                groups = [part for group in groups for part in _alike(state, exact.demand, group)]
    for group in filter(None, (*groups, nodes & ~state.fleet.everywhere)):
        yield group, diagnose(state, wanted, group & -group, "")


def _alike(state: State, demand: DeviceRequest, nodes: NodeSet) -> list[NodeSet]:
    """The set in parts, in each of which the nodes have as many cards of each word."""
    by_word: defaultdict[Hashable, list[CardSignature]] = defaultdict(list)
    for signature in state.fleet.with_cards:
        fit = signature.fit(demand, state.selectors)
        if fit is None:
            return [1 << number for number in numbers(nodes)]
        found = Diagnosis()
        _add(found, demand, signature, fit, 1)
        words, types = frozenset(found.words.items()), frozenset(found.types.items())
        shortfalls = frozenset(found.shortfalls)
        by_word[words, types, shortfalls, found.error, len(signature.kinds)].append(signature)
    groups = [nodes]
    for signatures in by_word.values():
        most = sum(len(state.fleet.with_cards[each]) for each in signatures)
        counted = state.fleet.by_devices([(each, 1) for each in signatures], min(most, 64))
        exactly = [few & ~more for few, more in zip(counted, [*counted[1:], 0], strict=True) if few]
        groups = [part for group in groups for each in exactly if (part := group & each)]
    return groups


def _about_requests(state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet) -> Iterator[str]:
    if not len(state.fleet):
        if not state.inventory.problems:
            yield f"no ResourceSlice of {DRIVER} is published"
        return
    if not nodes & state.fleet.everywhere:
        yield (
            f"none of the {nodes.bit_count()} nodes that fit the pod publishes a device of {DRIVER}"
        )
        return
    requests = [
        (each, exact)
        for each in wanted
        for request in each.requests
        for exact in request.alternatives
    ]
    for each, exact in requests:
        several = len(requests) > 1
        prefix = f"claim {each.ref.name}, request {exact.name}: " if several else ""
        yield prefix + _about(state, each, exact, nodes, several=several)


def _about(
    state: State, wanted: ClaimRequest, exact: ExactRequest, nodes: NodeSet, *, several: bool
) -> str:
    found = _known(state, exact.demand, nodes)
    selected = found.words.total()
    if not selected:
        known = sum(
            state.fleet.cards_in(nodes, each) * len(each.kinds) for each in state.fleet.with_cards
        )
        return found.error or (
            f"{_plural(known, 'device')}, none selected by DeviceClass {exact.class_name} and "
            f"the request; {_asked(exact)}{_profiles(state, exact, nodes)}"
        )
    parts = [f"{n} {word}" for word, n in sorted(found.words.items(), key=_by_count)]
    text = f"{_plural(selected, _noun(found.types))}: {', '.join(parts)}"
    text += _why_not_free(wanted, exact, found, several=several)
    text += "".join(_shortfalls(exact, found))
    return f"{text}; {found.error}" if found.error else text


def _known(state: State, demand: DeviceRequest, nodes: NodeSet) -> Diagnosis:
    """Counted once for all claims that ask the same, as long as nothing changes."""
    found: Diagnosis = state.diagnoses.of((demand, nodes), lambda: _count(state, demand, nodes))
    return found


def _count(state: State, demand: DeviceRequest, nodes: NodeSet) -> Diagnosis:
    found = Diagnosis()
    free: list[tuple[CardSignature, int]] = []
    own = False
    for signature in state.fleet.with_cards:
        state.selectors.allowance.check()
        cards = state.fleet.cards_in(nodes, signature)
        if not cards:
            continue
        fit = signature.fit(demand, state.selectors)
        if fit is None:
            own = True
            continue
        _add(found, demand, signature, fit, cards)
        if fit.free:
            free.append((signature, len(fit.free)))
    if own:
        return _count_each(state, demand, nodes)
    if free:
        most = sum(d * len(state.fleet.with_cards[each]) for each, d in free)
        by_devices = [nodes & each for each in state.fleet.by_devices(free, min(most, 64))]
        found.nodes = by_devices[1].bit_count()
        found.most = max((n for n, each in enumerate(by_devices) if each), default=0)
    return found


def _count_each(state: State, demand: DeviceRequest, nodes: NodeSet) -> Diagnosis:
    """The same, card by card, where a selector reads what is a card's own."""
    found = Diagnosis()
    for number in numbers(nodes & state.fleet.everywhere):
        before = found.free
        for card in state.fleet.at(number).cards:
            state.selectors.allowance.check()
            fit = card.signature.fit_of(demand, card.devices, state.selectors)
            _add(found, demand, card.signature, fit, 1)
        found.most = max(found.most, found.free - before)
        found.nodes += found.free > before
    return found


def _add(
    found: Diagnosis, demand: DeviceRequest, signature: CardSignature, fit: CardFit, cards: int
) -> None:
    """So many cards of the signature."""
    for index in fit.selected:
        verdict = signature.verdict(demand, index)
        found.words[_word(verdict, demand, signature, index)] += cards
        found.types[signature.kinds[index].text(ATTR_TYPE)] += cards
        if verdict is Verdict.TOO_SMALL:
            found.too_small += cards
            for each in demand.shortfalls(signature.kinds[index]):
                found.shortfalls[each] += cards
    found.free += len(fit.free) * cards
    if fit.error:
        found.error = min(found.error or fit.error, fit.error)


def _profiles(state: State, exact: ExactRequest, nodes: NodeSet) -> str:
    """What the sizes of instances could be: a limit's size is that of a profile."""
    if exact.class_name != CLASS_DRS:
        return ""
    known = {
        kind.text(ATTR_PROFILES)
        for each in state.fleet.with_cards
        if state.fleet.cards_in(nodes, each)
        for kind in each.kinds
    }
    words = " or ".join(sorted(known - {""}))
    return f"; the profiles of cards are {words}" if words else ""


def _why_not_free(
    wanted: ClaimRequest, exact: ExactRequest, found: Diagnosis, *, several: bool
) -> str:
    asked = _asked(exact)
    if found.most < (exact.demand.count or 1):
        return f" (at most {found.most} on one node); {asked}" if found.nodes > 1 else f"; {asked}"
    if exact.demand.count is None:
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
    for name in sorted({each.name for each in found.shortfalls}):
        asked = f"; asks for {_amount(name, exact.demand.capacity[name].text)}, "
        known = [
            each.most for each in found.shortfalls if each.name == name and each.most is not None
        ]
        most = max(known, key=lambda amount: amount.value, default=None)
        if found.too_small < found.words.total():
            has = "none" if most is None else f"at most {most.text}"
            yield f"{asked}a {noun} that is too small has {has}"
        elif most is None:
            yield f"{asked}which no {noun} has"
        else:
            yield f"{asked}no {noun} has more than {most.text}"


def _amount(name: str, text: str) -> str:
    if name == CAPACITY_SLICES:
        return "1 slice" if text == "1" else f"{text} slices"
    return f"{text} of {name}"


def _word(verdict: Verdict, demand: DeviceRequest, card: CardSignature, index: int) -> str:
    match verdict:
        case Verdict.EXCLUDED:
            return _MODES.get(card.holder(index), "whose card is held")
        case Verdict.FULL:
            return _too_full(demand, card, index)
        case Verdict.TAINTED:
            return _taint(demand, card, index)
    return str(verdict)


def _too_full(demand: DeviceRequest, card: CardSignature, index: int) -> str:
    offer, use = demand.offer(card.kinds[index]), card.uses[index]
    assert offer is not None  # or it would be too small
    assert use is not None  # or it would have room
    name = next(n for n, amount, all_ in offer.amounts if use.consumed.get(n, 0) + amount > all_)
    text = offer.consumed[name].text
    if name == CAPACITY_SLICES:
        return "without a free slice" if text == "1" else f"with fewer than {text} free slices"
    return f"with less than {text} of {name} free"


def _taint(demand: DeviceRequest, card: CardSignature, index: int) -> str:
    offer = demand.offer(card.kinds[index])
    assert offer is not None  # or it would be too small
    if any(taint.key == TAINT_UNHEALTHY for taint in offer.taints):
        return "unhealthy"
    first = offer.taints[0]
    return f"tainted {first.key}" + (f" by DeviceTaintRule {first.rule}" if first.rule else "")


def _asked(exact: ExactRequest) -> str:
    return f"{'all' if exact.demand.count is None else exact.demand.count} requested"


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _noun(types: Counter[str]) -> str:
    """A request that is served by one type of device sees one device of each card."""
    kinds = {kind for kind, count in types.items() if count}
    return "card" if len(kinds) == 1 and kinds <= _MODES.keys() else "device"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
