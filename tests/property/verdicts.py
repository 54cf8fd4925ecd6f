"""Holds the allocator against the oracle on one random state after the other."""

from __future__ import annotations

from collections.abc import Iterable

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.allocated_devices import AllocatedDevices, allocations_of
from controller.allocator.claim_request import parse_claim
from controller.allocator.inventory import Inventory
from controller.allocator.results import DeviceAssignments
from controller.allocator.state import State
from dra_driver.selector.selector import Selectors
from tests.property.oracle import Oracle, Slot
from tests.property.states import Scenario, classes, scenario
from tests.seed import told

_SELECTORS = Selectors()
_CLASSES = classes()


def check(seeds: Iterable[int]) -> int:
    """Raises AssertionError, naming the seed, at the first state where the two differ; gives the
    number of states that were satisfiable."""
    satisfiable = 0
    for seed in seeds:
        with told(seed):
            satisfiable += _check(scenario(seed), f"seed {seed}")
    return satisfiable


def state_of(given: Scenario) -> State:
    allocated = AllocatedDevices()
    for claim in given.held:
        for hold in allocations_of(claim):
            allocated.add(hold)
    return State(Inventory.of(given.slices), allocated, _CLASSES, _SELECTORS)


def _check(given: Scenario, seed: str) -> bool:
    wanted = [parse_claim(each, _CLASSES) for each in given.wanted]
    state = state_of(given)
    outcome = allocate(state, wanted, state.numbers.set_of(given.nodes))
    possible = {node: Oracle(given, node).satisfiable() for node in given.nodes}
    ranks = {
        node: sum(choice.alternatives) for node, choice in possible.items() if choice is not None
    }
    if not isinstance(outcome, Allocation):
        assert not ranks, f"{seed}: it fits on {sorted(ranks)}, but: {outcome.explain()}"
        assert "stopped" not in outcome.explain(), seed
        return False
    choice = possible[outcome.node]
    assert choice is not None, f"{seed}: nothing fits on {outcome.node}"
    assert ranks[outcome.node] == min(ranks.values()), f"{seed}: earlier alternatives were there"
    pairs = list(_pairs(given, outcome.assignments))
    assert Oracle(given, outcome.node).valid(pairs), f"{seed}: a rule is broken by {pairs}"
    first = {(slot.claim, slot.name) for slot in choice.slots}
    chosen = {(slot.claim, slot.name) for slot, _ in pairs}
    assert chosen == first, f"{seed}: other alternatives than the first that fit"
    return True


def _pairs(given: Scenario, grants: DeviceAssignments) -> Iterable[tuple[Slot, str]]:
    for number, (claim, granted) in enumerate(zip(given.wanted, grants, strict=True)):
        requests = claim["spec"]["devices"]["requests"]
        for grant in granted:
            name, _, sub = grant.request.name.partition("/")
            index, request = next(
                (n, each) for n, each in enumerate(requests) if each["name"] == name
            )
            spec = request.get("exactly") or next(
                each for each in request["firstAvailable"] if each["name"] == sub
            )
            yield Slot(number, index, grant.request.name, spec), grant.device.id.name
