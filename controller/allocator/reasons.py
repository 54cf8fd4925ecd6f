"""Why nothing was allocated, in the words that reach the event on the claim and on the pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from controller.allocator.attempt import Attempt
from controller.allocator.demand import Demand, Shortfall
from controller.allocator.device import Device
from controller.allocator.request import MOST_RESULTS, ExactRequest, Wanted
from controller.allocator.state import State, Verdict
from controller.allocator.tally import Tally, Total
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


def explain(state: State, wanted: Sequence[Wanted], nodes: Collection[str], stopped: str) -> str:
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


def _about_requests(
    state: State, wanted: Sequence[Wanted], nodes: Collection[str]
) -> Iterator[str]:
    if not state.inventory.by_id:
        if not state.inventory.problems:
            yield f"no ResourceSlice of {DRIVER} is published"
        return
    if not any(_devices(state, node) for node in nodes):
        yield f"none of the {len(nodes)} nodes that fit the pod publishes a device of {DRIVER}"
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
    state: State, wanted: Wanted, exact: ExactRequest, nodes: Collection[str], *, several: bool
) -> str:
    count = partial(_count, state, exact.demand)
    total = state.tallies.total(exact.demand, nodes, count)
    selected = total.words.total()
    error = min((text for text, nodes in total.errors.items() if nodes), default="")
    if not selected:
        known = sum(len(_devices(state, node)) for node in nodes)
        return error or (
            f"{_plural(known, 'device')}, none selected by DeviceClass {exact.class_name} and "
            f"the request; {_asked(exact)}{_profiles(state, exact, nodes)}"
        )
    parts = [f"{n} {word}" for word, n in sorted(total.words.items(), key=_by_count) if n]
    text = f"{_plural(selected, _noun(total.types))}: {', '.join(parts)}"
    text += _why_not_free(wanted, exact, total, several=several)
    text += "".join(_shortfalls(exact, total))
    return f"{text}; {error}" if error else text


def _profiles(state: State, exact: ExactRequest, nodes: Collection[str]) -> str:
    """What the sizes of instances could be: a limit's size is that of a profile."""
    if exact.class_name != CLASS_DRS:
        return ""
    devices = (device for node in nodes for device in _devices(state, node))
    known = sorted({device.text(ATTR_PROFILES) for device in devices} - {""})
    return f"; the profiles of cards are {' or '.join(known)}" if known else ""


def _why_not_free(wanted: Wanted, exact: ExactRequest, total: Total, *, several: bool) -> str:
    asked = _asked(exact)
    free = +total.free
    most = max(free, default=0)
    if most < (exact.demand.count or 1):
        nodes_with_some = sum(nodes for devices, nodes in free.items() if devices)
        return f" (at most {most} on one node); {asked}" if nodes_with_some > 1 else f"; {asked}"
    if exact.demand.count is None:
        if total.words.total() > sum(devices * nodes for devices, nodes in free.items()):
            return f"; {asked}"
        if most > MOST_RESULTS:
            return f"; {asked}, and a claim can hold {MOST_RESULTS}"
    constraints = [each.words for each in wanted.constraints if each.applies(exact.name)]
    if constraints:
        return f"; {asked} {' and '.join(constraints)}"
    if several:
        return f"; {asked}, but not all requests fit together"
    return f"; {asked}, but not together" if most > 1 else f"; {asked}"


def _shortfalls(exact: ExactRequest, total: Total) -> Iterator[str]:
    """What was asked, and the most that the cards that are too small could give."""
    noun = _noun(total.types)
    found = +total.shortfalls
    short = total.words[Verdict.TOO_SMALL]
    for name in sorted({each.name for each in found}):
        asked = f"; asks for {_amount(name, exact.demand.capacity[name].text)}, "
        known = [each.most for each in found if each.name == name and each.most is not None]
        most = max(known, key=lambda amount: amount.value, default=None)
        if short < total.words.total():
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


def _count(state: State, demand: Demand, node: str) -> Tally:
    state.selectors.allowance.check()
    selected = state.selected(demand, node)
    fresh = Attempt(state)
    words: Counter[str] = Counter()
    shortfalls: Counter[Shortfall] = Counter()
    free = 0
    for device in selected.devices:
        verdict = state.verdict(demand, device)
        if verdict is Verdict.FREE and not fresh.allows(device):
            words["without free counters"] += 1
            continue
        words[_word(state, verdict, demand, device)] += 1
        free += verdict is Verdict.FREE
        if verdict is Verdict.TOO_SMALL:
            shortfalls.update(demand.shortfalls(device.kind))
    types = Counter(device.text(ATTR_TYPE) for device in selected.devices)
    return Tally(words, free, types, selected.error, shortfalls)


def _word(state: State, verdict: Verdict, demand: Demand, device: Device) -> str:
    match verdict:
        case Verdict.EXCLUDED:
            return _mode_of_holder(state, device)
        case Verdict.FULL:
            return _too_full(state, demand, device)
        case Verdict.TAINTED:
            return _taint(demand, device)
    return str(verdict)


def _mode_of_holder(state: State, device: Device) -> str:
    holder = state.openings.holder_of_card(device)
    assert holder is not None  # or the device would not be excluded
    known = state.inventory.by_id.get(holder)
    mode = known.text(ATTR_TYPE) if known is not None else holder.name.partition("-")[0]
    return _MODES.get(mode, "whose card is held")


def _too_full(state: State, demand: Demand, device: Device) -> str:
    offer, use = demand.offer(device.kind), state.holdings.use(device.id)
    assert offer is not None  # or it would be too small
    assert use is not None  # or it would have room
    name = next(n for n, amount, all_ in offer.amounts if use.consumed.get(n, 0) + amount > all_)
    text = offer.consumed[name].text
    if name == CAPACITY_SLICES:
        return "without a free slice" if text == "1" else f"with fewer than {text} free slices"
    return f"with less than {text} of {name} free"


def _taint(demand: Demand, device: Device) -> str:
    offer = demand.offer(device.kind)
    assert offer is not None  # or it would be too small
    if any(taint.key == TAINT_UNHEALTHY for taint in offer.taints):
        return "unhealthy"
    first = offer.taints[0]
    return f"tainted {first.key}" + (f" by DeviceTaintRule {first.rule}" if first.rule else "")


def _devices(state: State, node: str) -> tuple[Device, ...]:
    return state.inventory.devices_of(node, state.nodes.get(node))


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
