"""What is chosen where several choices fit: nodes and cards, by the policy of packing."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import parse_claim
from controller.allocator.packing.policy import Policy
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from tests.unit.controller.allocator.build import (
    allocated,
    claim,
    device,
    pool,
    request,
    state,
)
from tests.unit.controller.allocator.decide import (
    DRS,
    MODES,
    SAME_SWITCH,
    SELECTORS,
    SHARE,
    SHARED,
    cards,
    decide,
    names,
)

BINPACK = Policy()
SPREAD = Policy(Packing.SPREAD, Packing.SPREAD)
SPREAD_NODES = Policy(nodes=Packing.SPREAD)
SPREAD_CARDS = Policy(cards=Packing.SPREAD)
TWO_NODES = [*pool("a", cards(3, *MODES)), *pool("b", cards(3, *MODES))]
USED_A = [
    allocated("w", "a", *names("whole", 2)),
    allocated("s", "a", *names("shared", 0), consumed={"slices": "3"}),
]
ROOTS = [
    device(mode, bus, root=f"pci0000:{bus // 2:02x}", numa=bus // 4)
    for bus in range(8)
    for mode in ("whole",)
]
CASES: dict[str, tuple[list[Object], list[Object], Object, Policy, tuple[str, list[str]]]] = {
    "shares fill the card in use": (
        TWO_NODES,
        USED_A,
        request(cls=SHARED, capacity=SHARE),
        BINPACK,
        ("a", names("shared", 0)),
    ),
    "shares of a fuller card on an emptier node": (
        TWO_NODES,
        [*USED_A, allocated("t", "b", *names("shared", 1), consumed={"slices": "5"})],
        request(cls=SHARED, capacity=SHARE),
        BINPACK,
        ("b", names("shared", 1)),
    ),
    "equally full cards: the fuller node": (
        TWO_NODES,
        [*USED_A, allocated("t", "b", *names("shared", 1), consumed={"slices": "3"})],
        request(cls=SHARED, capacity=SHARE),
        BINPACK,
        ("a", names("shared", 0)),
    ),
    "a free card of the node with the fewest": (
        TWO_NODES,
        [allocated("w", "b", *names("whole", 2))],
        request(cls=SHARED, capacity=SHARE),
        BINPACK,
        ("b", names("shared", 0)),
    ),
    "instances stand beside those of their size": (
        pool("a", cards(2, *MODES)),
        [
            allocated("x", "a", *names("drs", 0), consumed={"size": "3"}),
            allocated("y", "a", *names("drs", 1), consumed={"size": "1"}),
            allocated("z", "a", *names("drs", 1), consumed={"size": "1"}),
            allocated("u", "a", *names("drs", 1), consumed={"size": "1"}),
        ],
        request(cls=DRS, capacity={"size": "1"}),
        BINPACK,
        ("a", names("drs", 1)),
    ),
    "cards of a node that is broken already": (
        TWO_NODES,
        [allocated("w", "b", *names("whole", 2))],
        request(),
        BINPACK,
        ("b", names("whole", 0)),
    ),
    "spread: the emptier node, the emptier card": (
        TWO_NODES,
        USED_A,
        request(cls=SHARED, capacity=SHARE),
        SPREAD,
        ("b", names("shared", 2)),  # the one without a neighbour behind its switch
    ),
    "spread: a free card of the node before one in use": (
        pool("a", cards(2, *MODES)),
        [allocated("s", "a", *names("shared", 0), consumed=SHARE)],
        request(cls=SHARED, capacity=SHARE),
        SPREAD,
        ("a", names("shared", 1)),
    ),
    "spread nodes, binpack cards": (
        [*TWO_NODES, *pool("c", cards(3, *MODES))],
        [
            *USED_A,
            allocated("x", "b", *names("shared", 1), consumed=SHARE),
            allocated("y", "c", *names("whole", 0)),
        ],
        request(cls=SHARED, capacity=SHARE),
        SPREAD_NODES,
        ("b", names("shared", 1)),
    ),
    "binpack nodes, spread cards": (
        TWO_NODES,
        [*USED_A, allocated("x", "b", *names("shared", 1), consumed=SHARE)],
        request(cls=SHARED, capacity=SHARE),
        SPREAD_CARDS,
        ("a", names("shared", 1)),
    ),
    "a root complex with enough": (
        pool("a", ROOTS),
        [allocated("x", "a", *names("whole", 0))],
        request(count=2),
        BINPACK,
        ("a", names("whole", 2, 3)),
    ),
    "a NUMA node where no root complex has enough": (
        pool("a", ROOTS),
        [allocated("x", "a", *names("whole", 0))],
        request(count=3),
        BINPACK,
        ("a", names("whole", 1, 2, 3)),
    ),
    "of equally free nodes the one where cards are near": (
        [*pool("a", cards(4)), *pool("b", cards(4))],
        [
            allocated("x", "a", *names("whole", 0, 2)),
            allocated("y", "b", *names("whole", 0, 1)),
        ],
        request(count=2),
        BINPACK,
        ("b", names("whole", 2, 3)),
    ),
}


@pytest.mark.parametrize(
    ("slices", "held", "asked", "policy", "expected"), CASES.values(), ids=CASES
)
def test_chosen(
    slices: list[Object],
    held: list[Object],
    asked: Object,
    policy: Policy,
    expected: tuple[str, list[str]],
) -> None:
    node, found = expected
    outcome = decide(slices, held, claim("c", [asked]), policy=policy)
    assert outcome == (node, [name.removesuffix("-00-0") for name in found])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(BINPACK, [("a", 0)] * 4, id="binpack takes no notice of replicas"),
        pytest.param(SPREAD, [("a", 0), ("b", 0), ("a", 1), ("b", 1)], id="nodes, then cards"),
        pytest.param(SPREAD_CARDS, [("a", 0), ("a", 1)] * 2, id="cards of a node"),
        pytest.param(SPREAD_NODES, [("a", 0), ("b", 0)] * 2, id="nodes, with cards filled"),
    ],
)
def test_replicas_keep_apart(policy: Policy, expected: list[tuple[str, int]]) -> None:
    """Four replicas of a workload, one after the other; nothing else is counted."""
    slices = [*pool("a", cards(2, *MODES)), *pool("b", cards(2, *MODES))]
    found = state(slices, selectors=SELECTORS)
    share = request(cls=SHARED, capacity=SHARE)
    peers: Counter[tuple[str, str]] = Counter()
    chosen = []
    for number in range(4):
        wanted = [parse_claim(claim(f"c{number}", [share]), found.classes)]
        outcome = allocate(found, wanted, found.numbers.set_of("ab"), policy=policy, peers=peers)
        assert isinstance(outcome, Allocation)
        card = outcome.assignments[0][0].device.card
        assert card is not None
        peers[card] += 1
        chosen.append((outcome.node, int(card[1][5:7], 16)))
    assert chosen == expected


EXAMPLE = [*pool("a", cards(4, *MODES)), *pool("b", cards(4, *MODES))]
EXAMPLE_HELD = [
    allocated("s", "a", *names("shared", 0), consumed={"slices": "4"}),
    allocated("w", "a", *names("whole", 2)),
    allocated("t", "b", *names("shared", 0), consumed={"slices": "3"}),
]


@pytest.mark.parametrize(
    ("asked", "near", "expected"),
    [
        (request(cls=SHARED, capacity={"slices": "2"}), False, ("a", "shared", (0,))),
        (request(cls=SHARED, capacity={"slices": "3"}), False, ("b", "shared", (0,))),
        (request(cls=SHARED, capacity={"slices": "5"}), False, ("a", "shared", (1,))),
        (request(), False, ("a", "whole", (1,))),
        (request(count=2), False, ("a", "whole", (1, 3))),
        (request(count=2), True, ("b", "whole", (2, 3))),
    ],
    ids=["2 slices", "3 slices", "5 slices", "a card", "two cards", "two neighbours"],
)
def test_the_worked_example(
    asked: Object, near: bool, expected: tuple[str, str, tuple[int, ...]]
) -> None:
    """As docs/user/how-a-device-is-chosen.md tells it."""
    node, mode, buses = expected
    wanted = claim("c", [asked], constraints=[SAME_SWITCH] if near else [])
    chosen = [name.removesuffix("-00-0") for name in names(mode, *buses)]
    assert decide(EXAMPLE, EXAMPLE_HELD, wanted) == (node, chosen)


MANY = [f"n{number:02}" for number in range(20)]
