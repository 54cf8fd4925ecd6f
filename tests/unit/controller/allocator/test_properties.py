"""Properties of the allocator over random small clusters, held against brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.allocator.allocate import Allocation, Unsatisfied, allocate
from controller.allocator.device import Device, DeviceId
from controller.allocator.holdings import Hold
from controller.allocator.request import Request, Wanted, parse_claim
from controller.allocator.state import State
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import (
    UNHEALTHY,
    claim,
    device,
    pool,
    request,
    state,
)

SELECTORS = Selectors()
MODES = ("whole", "shared", "drs")
PREFIX = {"whole": "", "shared": "shared-", "drs": "drs-"}
NODES = ("a", "b")


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    slices: list[Object] = []
    for node in NODES:
        devices: list[Object] = []
        for bus in range(draw(st.integers(0, 3))):
            switch = draw(st.sampled_from(("", "0000:01:1f.0", "0000:02:1f.0")))
            taints = [UNHEALTHY] if draw(st.integers(0, 5)) == 0 else []
            devices += [device(mode, bus, switch=switch, taints=taints, slices=3) for mode in MODES]
        slices += pool(node, devices)
    return slices


@st.composite
def claims(draw: st.DrawFn, name: str) -> Object:
    requests = []
    for number in range(draw(st.integers(1, 2))):
        mode = draw(st.sampled_from(MODES))
        capacity = {
            "whole": {},
            "shared": {"slices": str(draw(st.integers(1, 3)))},
            "drs": {"size": str(draw(st.integers(1, 6)))},
        }[mode]
        requests.append(
            request(
                f"r{number}",
                cls=f"{PREFIX[mode]}gcu.enflame.com",
                count=draw(st.integers(1, 2)),
                capacity=capacity,
            )
        )
    attribute = draw(st.sampled_from(("", "pcieSwitch", "card", "type")))
    constraints = [{"matchAttribute": f"gcu.enflame.com/{attribute}"}] if attribute else []
    return claim(name, requests, constraints=constraints)


@st.composite
def bursts(draw: st.DrawFn) -> list[Object]:
    return [draw(claims(f"c{number}")) for number in range(draw(st.integers(1, 4)))]


def grant_all(found: State, burst: list[Object]) -> Iterator[tuple[Wanted, Allocation]]:
    """Allocates one claim after the other, each on top of those before."""
    for each in burst:
        wanted = parse_claim(each, found.classes)
        outcome = allocate(found, [wanted], NODES)
        if isinstance(outcome, Allocation):
            for grant in outcome.grants[0]:
                consumed = grant.consumed
                found.holdings.add(
                    Hold(
                        grant.device.id,
                        None if consumed is None else {k: a.value for k, a in consumed.items()},
                    )
                )
            yield wanted, outcome


@given(clusters(), bursts())
@settings(max_examples=150, deadline=None)
def test_no_rule_is_ever_broken(slices: list[Object], burst: list[Object]) -> None:
    found = state(slices, selectors=SELECTORS)
    modes: dict[tuple[str, str | None], set[str]] = {}
    wholes: Counter[object] = Counter()
    used: dict[tuple[object, str], Fraction] = {}
    for wanted, allocation in grant_all(found, burst):
        grants = allocation.grants[0]
        assert [grant.request for grant in grants] == [
            asked for asked in wanted.requests for _ in range(asked.count)
        ]
        for grant in grants:
            granted = grant.device
            assert granted.node == allocation.node
            assert all(taint.key != UNHEALTHY["key"] for taint in granted.taints)
            modes.setdefault((granted.id.pool, granted.card), set()).add(granted.text("type"))
            if grant.consumed is None:
                wholes[granted.id] += 1
            for name, amount in (grant.consumed or {}).items():
                key = granted.id, name
                used[key] = used.get(key, Fraction(0)) + amount.value
                assert used[key] <= granted.capacity[name].total.value
        for constraint in wanted.constraints:
            assert len({grant.device.attributes[constraint.attribute] for grant in grants}) == 1
    assert all(len(each) == 1 for each in modes.values())
    assert all(count == 1 for count in wholes.values())


@given(clusters(), bursts())
@settings(max_examples=150, deadline=None)
def test_satisfiable_exactly_when_brute_force_finds_a_way(
    slices: list[Object], burst: list[Object]
) -> None:
    *before, last = burst
    found = state(slices, selectors=SELECTORS)
    list(grant_all(found, before))
    wanted = parse_claim(last, found.classes)
    outcome = allocate(found, [wanted], NODES)
    possible = any(brute_force(found, wanted, node) for node in NODES)
    assert isinstance(outcome, Allocation) == possible
    assert not isinstance(outcome, Unsatisfied) or "stopped" not in outcome.reason


def brute_force(found: State, wanted: Wanted, node: str) -> bool:
    """Every choice of a device for every slot, each checked from the rules' own words."""
    slots = [asked for asked in wanted.requests for _ in range(asked.count)]
    devices = found.inventory.by_node.get(node, ())
    for choice in product(devices, repeat=len(slots)):
        by_request: dict[str, list[object]] = {}
        for asked, chosen in zip(slots, choice, strict=True):
            by_request.setdefault(asked.name, []).append(chosen.id)
        if any(len(set(ids)) != len(ids) for ids in by_request.values()):
            continue
        wrong_class = any(
            asked.class_name != f"{PREFIX[chosen.text('type')]}gcu.enflame.com"
            for asked, chosen in zip(slots, choice, strict=True)
        )
        unhealthy = any(taint.key == UNHEALTHY["key"] for each in choice for taint in each.taints)
        unequal = any(
            len({each.attributes.get(constraint.attribute) for each in choice}) != 1
            or constraint.attribute not in choice[0].attributes
            for constraint in wanted.constraints
        )
        if not (wrong_class or unhealthy or unequal) and _room(found, slots, choice):
            return True
    return False


def _room(found: State, slots: list[Request], choice: tuple[Device, ...]) -> bool:
    chosen = {each.id for each in choice}
    return all(
        _alone_on_its_card(found, each, chosen)
        and (_capacity(found, each, slots, choice) if each.multiple else _once(found, each, choice))
        for each in set_of(choice)
    )


def set_of(choice: tuple[Device, ...]) -> list[Device]:
    return list({each.id: each for each in choice}.values())


def _alone_on_its_card(found: State, each: Device, chosen: set[DeviceId]) -> bool:
    others = found.inventory.siblings(each)
    return not any(found.holdings.holds(other.id) or other.id in chosen for other in others)


def _once(found: State, each: Device, choice: tuple[Device, ...]) -> bool:
    return not found.holdings.holds(each.id) and [mine.id for mine in choice].count(each.id) == 1


def _capacity(found: State, each: Device, slots: list[Request], choice: tuple[Device, ...]) -> bool:
    [(name, capacity)] = each.capacity.items()
    asked = [slot for slot, mine in zip(slots, choice, strict=True) if mine.id == each.id]
    total = found.holdings.consumed(each.id, name)
    total += sum((_rounded(name, slot.capacity[name].value) for slot in asked), Fraction(0))
    return total <= capacity.total.value


def _rounded(name: str, asked: Fraction) -> Fraction:
    if name == "slices":
        return asked
    return Fraction(min(size for size in (1, 3, 6) if size >= asked))
