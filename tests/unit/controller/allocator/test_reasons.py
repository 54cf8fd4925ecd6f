"""Why nothing was allocated, word by word."""

from __future__ import annotations

import pytest

from controller.allocator.allocate import FitError, allocate
from controller.allocator.allocated_devices import allocations_of
from controller.allocator.claim_request import parse_claim
from dra_driver.asks.templates import template_for
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    ANY,
    HELD,
    UNHEALTHY,
    allocated,
    claim,
    device,
    pool,
    request,
    resource_slice,
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


def limits(template: str) -> list[Object]:
    """The requests of a claim template for limits."""
    made = template_for("default", template)
    assert made is not None
    requests: list[Object] = made["spec"]["spec"]["devices"]["requests"]
    return requests


REASONS = {
    "nothing published": ([], [], [claim("c")], "no ResourceSlice of gcu.enflame.com is published"),
    "another driver's slices only": (
        pool("a", [{"name": "gpu-0"}], driver="gpu.example.com"),
        [],
        [claim("c")],
        "no ResourceSlice of gcu.enflame.com is published",
    ),
    "nothing on the nodes that fit": (
        pool("z", cards(1)),
        [],
        [claim("c")],
        "none of the 3 nodes that fit the pod publishes a device of gcu.enflame.com",
    ),
    "held and unhealthy": (
        pool("a", [*cards(5), *(device("whole", bus, taints=[UNHEALTHY]) for bus in (5, 6, 7))]),
        [allocated("x", "a", *names("whole", 0, 1, 2, 3, 4))],
        [claim("c")],
        "8 cards: 5 held, 3 unhealthy; 1 requested",
    ),
    "held by a deleted claim": (
        pool(
            "a", [device("whole", 0, taints=[HELD]), device("whole", 1, taints=[HELD, UNHEALTHY])]
        ),
        [],
        [claim("c")],
        "2 cards: 1 still held by a deleted claim, 1 unhealthy; 1 requested",
    ),
    "devices of one card": (
        pool("a", [device(mode, 0) for mode in ("whole", "shared", "drs")]),
        [],
        [claim("c", [request(cls=ANY, count=2)])],
        "3 devices: 3 free; 2 requested, but not together",
    ),
    "one card": (
        pool("a", cards(1)),
        [allocated("x", "a", *names("whole", 0))],
        [claim("c")],
        "1 card: 1 held; 1 requested",
    ),
    "too few on each node": (
        [*pool("a", cards(2)), *pool("b", cards(2))],
        [allocated("x", "a", *names("whole", 0))],
        [claim("c", [request(count=3)])],
        "4 cards: 3 free, 1 held (at most 2 on one node); 3 requested",
    ),
    "no switch with two": (
        pool("a", cards(4)),
        [allocated("x", "a", *names("whole", 0, 2))],
        [claim("c", [request(count=2)], constraints=[SAME_SWITCH])],
        "4 cards: 2 free, 2 held; 2 requested with the same gcu.enflame.com/pcieSwitch",
    ),
    "an attribute that nothing has": (
        pool("a", [device("whole", 0)]),
        [],
        [claim("c", constraints=[SAME_SWITCH])],
        "1 card: 1 free; 1 requested with the same gcu.enflame.com/pcieSwitch",
    ),
    "nothing selected": (
        pool("a", cards(2)),
        [],
        [claim("c", [request(selector='device.attributes["gcu.enflame.com"].model == "T20"')])],
        (
            "2 devices, none selected by DeviceClass gcu.enflame.com and the request; 1 requested; "
            "these cards are offered as whole only"
        ),
    ),
    "an instance of a size without a profile": (
        pool("a", [device("drs", 0), device("drs", 1)]),
        [],
        [claim("c", limits("enflame-drs-gcu-2"))],
        (
            "2 devices, none selected by DeviceClass drs-gcu.enflame.com and the request; "
            "1 requested; the profiles of cards are 1g.6gb,3g.20gb,6g.40gb; these cards are "
            "offered as drs (isolation fixed-share) only"
        ),
    ),
    "a foreign taint": (
        pool(
            "a", [device("whole", 0, taints=[{"key": "example.com/repair", "effect": "NoExecute"}])]
        ),
        [],
        [claim("c")],
        "1 card: 1 tainted example.com/repair; 1 requested",
    ),
    "another allocator's taint is not ours to ignore": (
        pool(
            "a",
            [
                device("whole", 0)
                | {
                    "taints": [
                        {
                            "key": "gcu.enflame.com/allocated-by",
                            "value": "scheduler",
                            "effect": "NoSchedule",
                        }
                    ]
                }
            ],
        ),
        [],
        [claim("c")],
        "1 card: 1 tainted gcu.enflame.com/allocated-by; 1 requested",
    ),
    "shares used up": (
        pool("a", cards(1, *MODES)),
        [allocated("x", "a", *names("shared", 0), consumed={"slices": "4"})],
        [claim("c", [request(cls=SHARED, capacity={"slices": "3"})])],
        "1 card: 1 with fewer than 3 free slices; 1 requested",
    ),
    "more than any card has": (
        pool("a", cards(1, *MODES)),
        [],
        [claim("c", [request(cls=DRS, capacity={"size": "7"})])],
        "1 card: 1 too small; 1 requested; asks for 7 of size, no card has more than 6",
    ),
    "a capacity that no device has": (
        pool("a", cards(1)),
        [],
        [claim("c", [request(capacity={"slices": "1"})])],
        "1 card: 1 too small; 1 requested; asks for 1 slice, which no card has",
    ),
    "more slices than any card has": (
        [*pool("a", cards(2, *MODES)), *pool("b", [device("shared", 0, slices=4)])],
        [],
        [claim("c", [request(cls=SHARED, capacity={"slices": "8"})])],
        "3 cards: 3 too small; 1 requested; asks for 8 slices, no card has more than 6",
    ),
    "more slices than some cards have": (
        pool("a", [device("shared", 0, slices=12), device("shared", 1)]),
        [allocated("x", "a", *names("shared", 0), consumed={"slices": "6"})],
        [claim("c", [request(cls=SHARED, capacity={"slices": "8"})])],
        (
            "2 cards: 1 too small, 1 with fewer than 8 free slices; 1 requested; "
            "asks for 8 slices, a card that is too small has at most 6"
        ),
    ),
    "more memory than any card has": (
        pool("a", cards(1)),
        [],
        [claim("c", [request(capacity={"memory": "80Gi"})])],
        "1 card: 1 too small; 1 requested; asks for 80Gi of memory, no card has more than 42976Mi",
    ),
    "a vanished device still holds its card": (
        pool("a", [device("whole", 0)]),
        [allocated("x", "a", *names("shared", 0), consumed=SHARE)],
        [claim("c")],
        "1 card: 1 in shared mode; 1 requested",
    ),
    "cards in every mode": (
        pool("a", cards(8, *MODES)),
        [
            allocated("d", "a", *names("drs", 0, 1, 2), consumed={"size": "1"}),
            allocated("s", "a", *names("shared", 3, 4, 5, 6), consumed={"slices": "3"}),
            allocated("w", "a", *names("whole", 7)),
        ],
        [claim("c", [request(cls=SHARED, capacity={"slices": "4"})])],
        "8 cards: 4 with fewer than 4 free slices, 3 in DRS mode, 1 held as a whole; 1 requested",
    ),
    "not a slice left": (
        pool("a", cards(1, *MODES)),
        [allocated("s", "a", *names("shared", 0), consumed={"slices": "6"})],
        [claim("c", [request(cls=SHARED)])],
        "1 card: 1 without a free slice; 1 requested",
    ),
    "no room for an instance": (
        pool("a", cards(1, *MODES)),
        [allocated("d", "a", *names("drs", 0), consumed={"size": "3"})],
        [claim("c", [request(cls=DRS, capacity={"size": "5"})])],
        "1 card: 1 with less than 6 of size free; 1 requested",
    ),
    "several requests are told one by one": (
        pool("a", cards(2)),
        [],
        [claim("c", [request("x", count=2), request("y")])],
        (
            "claim c, request x: 2 cards: 2 free; 2 requested, but not all requests fit together; "
            "claim c, request y: 2 cards: 2 free; 1 requested, but not all requests fit together"
        ),
    ),
    "an incomplete pool": (
        [resource_slice("a", cards(1), count=2, generation=3)],
        [],
        [claim("c")],
        "pool gcu.enflame.com/a is incomplete: 1 of 2 slices of generation 3",
    ),
    "an older generation does not count": (
        [
            resource_slice("a", cards(1), generation=1),
            resource_slice("a", cards(1), count=2, generation=2),
        ],
        [],
        [claim("c")],
        "pool gcu.enflame.com/a is incomplete: 1 of 2 slices of generation 2",
    ),
    "a device listed twice": (
        [resource_slice("a", cards(1), count=2), resource_slice("a", cards(1), index=1, count=2)],
        [],
        [claim("c")],
        "pool gcu.enflame.com/a is invalid: it lists device whole-0000-00-00-0 twice",
    ),
    "a selector that cannot be evaluated": (
        pool("a", cards(1)),
        [],
        [claim("c", [request(selector='device.attributes["gcu.enflame.com"].speed > 1')])],
        (
            "the selector 'device.attributes[\"gcu.enflame.com\"].speed > 1' cannot be evaluated: "
            "no such key: speed; correct the selector of the DeviceClass or of the claim's request"
        ),
    ),
}


@pytest.mark.parametrize(("slices", "held", "wanted", "reason"), REASONS.values(), ids=REASONS)
def test_reason(
    slices: list[Object], held: list[Object], wanted: list[Object], reason: str
) -> None:
    assert decide(slices, held, *wanted) == reason


def test_the_bound_on_work_is_told() -> None:
    """Five pairs of cards, and two requests of which each takes one card of every pair."""
    devices = [device("whole", bus, switch=str(bus % 5), numa=bus) for bus in range(9)]
    requests = [request(name, count=5) for name in ("x", "y")]
    limits = [
        {"distinctAttribute": "gcu.enflame.com/pcieSwitch", "requests": [name]}
        for name in ("x", "y")
    ]
    found = state(pool("a", devices), selectors=SELECTORS)
    wanted = [parse_claim(claim("c", requests, constraints=limits), found.classes)]
    outcome = allocate(found, wanted, found.numbers.bit("a"), steps=20)
    assert isinstance(outcome, FitError)
    assert outcome.explain().endswith(
        "the search was stopped on 1 node, after 2 choices that led nowhere"
    )


def test_what_is_told_follows_the_cluster() -> None:
    """Counted over nodes that are ranked, and so kept from one decision to the next."""
    nodes = [f"n{number:02}" for number in range(20)]
    found = state([each for node in nodes for each in pool(node, cards(1))], selectors=SELECTORS)
    wanted = [parse_claim(claim("c", [request(count=2)]), found.classes)]
    told = []
    for holder in (None, "n03", "n07"):
        if holder:
            for hold in allocations_of(allocated(holder, holder, *names("whole", 0))):
                found.allocated.add(hold)
        outcome = allocate(found, wanted, found.numbers.set_of(nodes))
        assert isinstance(outcome, FitError)
        told.append(outcome.explain())
    assert told == [
        "20 cards: 20 free (at most 1 on one node); 2 requested",
        "20 cards: 19 free, 1 held (at most 1 on one node); 2 requested",
        "20 cards: 18 free, 2 held (at most 1 on one node); 2 requested",
    ]
