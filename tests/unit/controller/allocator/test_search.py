"""The search tells apart what it must, and no more: hard claims end, common ones never turn."""

from __future__ import annotations

import pytest

from controller.allocator.allocate import Allocation, FitError, allocate
from controller.allocator.claim_request import parse_claim
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    ANY,
    allocated,
    card,
    claim,
    device,
    first_available,
    plain,
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
    whole,
)

SAME_CARD = {"matchAttribute": "gcu.enflame.com/card"}
HELD = [
    allocated("w", "a", *names("whole", 1)),
    allocated("s", "a", *names("shared", 2), consumed=SHARE),
    allocated("d", "a", *names("drs", 3), consumed={"size": "3"}),
]
COMMON: dict[str, list[Object]] = {
    "a card": [claim("c")],
    "two cards": [claim("c", [request(count=2)])],
    "two neighbours": [claim("c", [request(count=2)], constraints=[SAME_SWITCH])],
    "four cards of a NUMA node": [
        claim(
            "c",
            [request(count=4)],
            constraints=[{"matchAttribute": "resource.kubernetes.io/numaNode"}],
        )
    ],
    "slices": [claim("c", [request(cls=SHARED, capacity={"slices": "3"})])],
    "an instance": [claim("c", [request(cls=DRS, capacity={"size": "3"})])],
    "two containers with an instance each, on one card": [
        claim(
            "c",
            [request(name, cls=DRS, capacity={"size": "1"}) for name in ("x", "y")],
            constraints=[SAME_CARD],
        )
    ],
    "all three modes": [
        claim("c", [request("w"), request("s", cls=SHARED), request("d", cls=DRS)])
    ],
    "any card and a certain one": [
        claim(
            "c",
            [
                request("any"),
                request(
                    "certain",
                    selector=f'device.attributes["gcu.enflame.com"].card == "{card(0)}"',
                ),
            ],
        )
    ],
    "several claims of a pod": [claim("c"), claim("d", [request(cls=SHARED)])],
    "a card, or else slices": [claim("c", [first_available("r", request("w"), request("s"))])],
}


@pytest.mark.parametrize("wanted", COMMON.values(), ids=COMMON)
def test_common_claims_never_turn_back(wanted: list[Object]) -> None:
    found = state(pool("a", cards(8, *MODES)), HELD, selectors=SELECTORS)
    parsed = [parse_claim(each, found.classes) for each in wanted]
    assert isinstance(allocate(found, parsed, found.numbers.bit("a"), steps=0), Allocation)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param([claim("c", [request("x", count=9), request("y", count=8)])], id="two groups"),
        pytest.param([claim("c", [request(f"r{n}") for n in range(17)])], id="one by one"),
        pytest.param([claim(f"c{n}") for n in range(17)], id="claim by claim"),
        pytest.param(
            [claim("c", [request("x", count=9), request("s", cls=SHARED, count=8)])],
            id="two modes",
        ),
    ],
)
def test_what_cannot_be_is_soon_found_out(wanted: list[Object]) -> None:
    """Sixteen equal cards have more ways to be chosen than could be tried."""
    devices = [device(mode, bus) for bus in range(16) for mode in MODES]
    found = state(pool("a", devices), selectors=SELECTORS)
    parsed = [parse_claim(each, found.classes) for each in wanted]
    outcome = allocate(found, parsed, found.numbers.bit("a"), steps=2000)
    assert isinstance(outcome, FitError)
    assert "stopped" not in outcome.explain()


def test_equal_requests_for_shares_are_not_tried_in_every_order() -> None:
    """Cards with different rests, so that none is another's twin."""
    held = [
        allocated(f"h{bus}{n}", "a", *names("shared", bus), consumed=SHARE)
        for bus in range(6)
        for n in range(bus + 1)
    ]
    requests = [request(f"r{n}", cls=SHARED, capacity={"slices": "2"}) for n in range(9)]
    found = state(pool("a", cards(6, "shared")), held, selectors=SELECTORS)
    wanted = [parse_claim(claim("c", requests), found.classes)]
    outcome = allocate(found, wanted, found.numbers.bit("a"), steps=5000)
    assert isinstance(outcome, FitError)
    assert "stopped" not in outcome.explain()


def test_devices_that_serve_other_requests_are_no_twins() -> None:
    """Two cards of three devices each; what the second request asks is on the first card only."""

    def part(name: str, bus: int, kind: str) -> Object:
        return plain(name, attributes={"card": card(bus), "kind": kind})

    devices = [
        *(part(name, 0, kind) for name, kind in (("a0", "any"), ("a1", "x"), ("a2", "x"))),
        *(part(name, 1, kind) for name, kind in (("b0", "any"), ("b1", "y"), ("b2", "y"))),
    ]
    kind = 'device.attributes["gcu.enflame.com"].kind'
    wanted = claim(
        "c",
        [
            request("first", cls=ANY, selector=f'{kind} == "any"'),
            request("second", cls=ANY, selector=f'{kind} == "x"'),
        ],
    )
    assert decide(pool("a", devices), [], wanted) == ("a", ["b0", "a1"])


def test_a_claim_larger_than_any_group_falls_back_to_what_there_is() -> None:
    held = [allocated("x", "a", *names("whole", 0, 2, 4, 6))]
    outcome = decide(pool("a", cards(8)), held, claim("c", [request(count=4)]))
    assert outcome == ("a", whole(1, 3, 5, 7))


def test_a_spent_budget_keeps_no_easy_node_from_being_tried() -> None:
    nodes = [f"n{number:02}" for number in range(20)]
    slices = [each for node in nodes for each in pool(node, cards(1))] + pool("z", cards(2))
    found = state(slices, selectors=SELECTORS)
    wanted = [parse_claim(claim("c", [request(count=2)]), found.classes)]
    outcome = allocate(found, wanted, found.numbers.set_of([*nodes, "z"]), steps=0)
    assert isinstance(outcome, Allocation)
    assert outcome.node == "z"
