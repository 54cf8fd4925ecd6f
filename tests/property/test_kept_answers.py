"""What is kept from one decision to the next is what a fresh look would give."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from itertools import islice, product

import pytest

from controller.allocator.allocate import FitError, allocate, feasible, rank
from controller.allocator.allocated_devices import DeviceAllocation, allocations_of
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.diagnosis import diagnose, diagnose_nodes
from controller.allocator.packing.policy import Policy
from controller.allocator.state import State
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from tests.unit.controller.allocator.build import (
    CLASSES,
    UNHEALTHY,
    allocated,
    claim,
    device,
    pool,
    request,
    state,
)
from tests.unit.controller.allocator.decide import DRS, MODES, SAME_SWITCH, SELECTORS, SHARED

NODES = tuple(f"n{number:02}" for number in range(24))
CLAIMS = [
    [claim("whole")],
    [claim("two", [request(count=2)], constraints=[SAME_SWITCH])],
    [claim("one", [request()], constraints=[SAME_SWITCH])],
    [claim("share", [request(cls=SHARED, capacity={"slices": "2"})])],
    [claim("instance", [request(cls=DRS, capacity={"size": "3"})])],
    [claim("all", [request(allocationMode="All")])],
    [claim("five", [request(count=5)])],
    [claim("mixed", [request("w"), request("s", cls=SHARED)]), claim("more")],
]
POLICIES = [Policy(*each) for each in product(Packing, repeat=len(fields(Policy)))]


def published(node: str, draw: random.Random) -> Object:
    devices = [
        device(
            mode,
            bus,
            switch=str(bus // 2),
            numa=bus // 2,
            taints=[UNHEALTHY] if draw.random() < 0.1 else [],
        )
        for bus in range(draw.choice((2, 3, 4)))
        for mode in MODES
    ]
    return pool(node, devices)[0]


def held(number: int, draw: random.Random) -> Object:
    mode = draw.choice(MODES)
    consumed = {"shared": {"slices": "2"}, "drs": {"size": "3"}}.get(mode)
    name = f"{mode}-0000-{draw.randrange(4):02x}-00-0"
    return allocated(f"held-{number}", draw.choice(NODES), name, consumed=consumed)


def steps(draw: random.Random) -> Iterator[tuple[list[Object], list[Object]]]:
    """Slices and claims as they are after one event and the next."""
    slices = {node: published(node, draw) for node in NODES}
    claims: list[Object] = []
    for number in range(40):
        match draw.choice(("hold", "hold", "hold", "release", "publish")):
            case "hold":
                claims.append(held(number, draw))
            case "release" if claims:
                claims.pop(draw.randrange(len(claims)))
            case _:
                node = draw.choice(NODES)
                slices[node] = published(node, draw)
        yield list(slices.values()), list(claims)


def decided(
    found: State, wanted: Sequence[ClaimRequest], nodes: Sequence[str], policy: Policy
) -> object:
    found.fleet.refresh()  # numbers nodes by name: of equally good ones the first is taken
    outcome = allocate(found, wanted, found.numbers.set_of(nodes), policy=policy)
    if isinstance(outcome, FitError):
        return outcome.explain()
    return outcome.node, [grant.device.id for each in outcome.assignments for grant in each]


def holds(claims: list[Object]) -> list[DeviceAllocation]:
    return [hold for each in claims for hold in allocations_of(each)]


@pytest.mark.parametrize("seed", range(3))
def test_as_a_fresh_look(seed: int) -> None:
    draw = random.Random(seed)
    kept = state([], selectors=SELECTORS)
    counted: list[DeviceAllocation] = []
    for slices, claims in steps(draw):
        for each in slices:
            kept.inventory.put(each)
        for hold in counted:
            kept.allocated.remove(hold)
        counted = holds(claims)
        for hold in counted:
            kept.allocated.add(hold)
        wanted = [parse_claim(each, kept.classes) for each in draw.choice(CLAIMS)]
        policy = draw.choice(POLICIES)
        nodes = NODES if draw.random() < 0.7 else draw.sample(NODES, 18)
        fresh = state(slices, claims, selectors=SELECTORS)
        expected = decided(fresh, wanted, nodes, policy)
        assert decided(kept, wanted, nodes, policy) == expected


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: "-".join(astuple(policy)))
def test_the_fleet_s_sets_give_what_a_search_of_all_nodes_gives(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(0)
    for slices, claims in steps(draw):
        nodes = draw.sample(NODES, 16)
        wanted = [parse_claim(each, CLASSES) for each in draw.choice(CLAIMS[:7])]
        found = state(slices, claims, selectors=SELECTORS)
        quick = decided(found, wanted, nodes, policy)
        with monkeypatch.context() as patched:
            patched.setattr(
                "controller.allocator.allocate._Decision._exact_matching", lambda _: None
            )
            assert decided(found, wanted, nodes, policy) == quick


@pytest.mark.parametrize("claims", CLAIMS, ids=lambda claims: claims[0]["metadata"]["name"])
def test_nodes_of_which_the_same_is_said_are_found_together(claims: list[Object]) -> None:
    draw = random.Random(0)
    wanted = [parse_claim(each, CLASSES) for each in claims]
    for slices, taken in islice(steps(draw), 10):
        found = state(slices, taken, selectors=SELECTORS)
        everyone = found.numbers.set_of([*NODES, "without-devices"])
        found.fleet.refresh()
        together = diagnose_nodes(found, wanted, everyone)
        alone = {name: diagnose(found, wanted, found.numbers.bit(name), "") for name in together}
        assert together == alone
        assert together.keys() == {*NODES, "without-devices"}
        assert set(found.numbers.names(feasible(found, wanted, everyone))) == set(
            rank(found, wanted, everyone)
        )
