"""Every form of request: how many devices, which alternatives, with which access."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    ANY,
    UNHEALTHY,
    allocated,
    claim,
    device,
    first_available,
    plain,
    pool,
    request,
    resource_slice,
)
from tests.unit.controller.allocator.decide import (
    DRS,
    MODES,
    SHARE,
    SHARED,
    cards,
    decide,
    names,
    whole,
)

ALL: Object = {"allocationMode": "All"}
ADMIN: Object = {"adminAccess": True}
SPAN = {"default": "1", "validRange": {"min": "1", "max": "6"}}
POOLED: Object = {
    "allowMultipleAllocations": True,
    "capacity": {"slices": {"value": "6", "requestPolicy": SPAN}},
}
TINY: Object = {"allowMultipleAllocations": True, "capacity": {"slices": {"value": "1"}}}
ALONE = '("alone" in device.attributes["gcu.enflame.com"])'
THIRTY_THREE = [plain(f"d{number:02}") for number in range(33)]


def any_of(*subs: tuple[str, str, int]) -> Object:
    """Alternatives (name, class, count)."""
    return first_available("r", *(request(name, cls=cls, count=n) for name, cls, n in subs))


CASES = {
    "exact count takes no more": (pool("a", cards(3)), [], [request(count=2)], whole(0, 1)),
    "exact count of a shared device takes different devices": (
        pool("a", cards(2, *MODES)),
        [],
        [request(cls=SHARED, count=2)],
        ["shared-0000-00", "shared-0000-01"],
    ),
    "exact count never takes one shared device twice": (
        pool("a", cards(1, *MODES)),
        [],
        [request(cls=SHARED, count=2)],
        "1 card: 1 free; 2 requested",
    ),
    "two requests may share a device": (
        pool("a", cards(1, *MODES)),
        [],
        [request("x", cls=SHARED, capacity=SHARE), request("y", cls=SHARED, capacity=SHARE)],
        ["shared-0000-00", "shared-0000-00"],
    ),
    "all takes each that matches": (pool("a", cards(3)), [], [request(**ALL)], whole(0, 1, 2)),
    "all waits for one that is held": (
        pool("a", cards(3)),
        [allocated("x", "a", *names("whole", 1))],
        [request(**ALL)],
        "3 cards: 2 free, 1 held; all requested",
    ),
    "all waits for one that is tainted": (
        pool("a", [device("whole", 0), device("whole", 1, taints=[UNHEALTHY])]),
        [],
        [request(**ALL)],
        "2 cards: 1 free, 1 unhealthy; all requested",
    ),
    "all waits for a card in another mode": (
        pool("a", cards(2, *MODES)),
        [allocated("x", "a", *names("shared", 1), consumed=SHARE)],
        [request(**ALL)],
        "2 cards: 1 free, 1 in shared mode; all requested",
    ),
    "all waits for a shared device without room": (
        pool("a", [plain("p", **POOLED), plain("q", **POOLED)]),
        [allocated("x", "a", "p", consumed={"slices": "6"})],
        [request(cls=ANY, **ALL)],
        "2 devices: 1 free, 1 without a free slice; all requested",
    ),
    "all passes by shared devices that are too small": (
        pool("a", [plain("p", **POOLED), plain("q", **TINY)]),
        [],
        [request(cls=ANY, capacity={"slices": "6"}, **ALL)],
        ["p"],
    ),
    "a negative amount of a capacity without a policy": (
        pool("a", [plain("p", capacity={"memory": {"value": "40Gi"}})]),
        [],
        [request(cls=ANY, capacity={"memory": "-5"})],
        "1 device: 1 too small; 1 requested; asks for -5 of memory, which is negative",
    ),
    "a negative amount where the policy has a least one": (
        pool("a", [plain("p", **POOLED)]),
        [],
        [request(cls=ANY, capacity={"slices": "-5"})],
        ["p"],
    ),
    "all needs at least one": (
        pool("a", cards(2)),
        [],
        [request(cls=DRS, **ALL)],
        (
            "2 devices, none selected by DeviceClass drs-gcu.enflame.com and the request; "
            "all requested; these cards are offered as whole only"
        ),
    ),
    "all waits for pools that are incomplete": (
        [*pool("a", cards(1)), _late := resource_slice("a", cards(1), count=2)],
        [],
        [request(**ALL)],
        (
            "1 card: 1 free; all requested; "
            "pool gcu.enflame.com/late is incomplete: 1 of 2 slices of generation 1"
        ),
    ),
    "all and 32 results": (
        pool("a", THIRTY_THREE[:32]),
        [],
        [request(cls=ANY, **ALL)],
        [each["name"] for each in THIRTY_THREE[:32]],
    ),
    "all and more than 32 results": (
        pool("a", THIRTY_THREE),
        [],
        [request(cls=ANY, **ALL)],
        "33 devices: 33 free; all requested, and a claim can hold 32",
    ),
    "all beside another request and more than 32 results": (
        pool("a", [*THIRTY_THREE[:32], plain("one", attributes={"alone": True})]),
        [],
        [request("x", cls=ANY, selector=ALONE), request("y", cls=ANY, selector=f"!{ALONE}", **ALL)],
        (
            "claim c, request x: 1 device: 1 free; 1 requested, but not all requests fit together; "
            "claim c, request y: 32 devices: 32 free; all requested, "
            "but not all requests fit together"
        ),
    ),
    "the first alternative that fits": (
        pool("a", cards(2)),
        [],
        [any_of(("many", "gcu.enflame.com", 3), ("few", "gcu.enflame.com", 2))],
        whole(0, 1),
    ),
    "the first of two that fit": (
        pool("a", cards(2, *MODES)),
        [],
        [any_of(("drs", DRS, 1), ("whole", "gcu.enflame.com", 1))],
        ["drs-0000-00"],
    ),
    "a later alternative for the sake of another request": (
        pool("a", cards(2)),
        [],
        [
            any_of(("two", "gcu.enflame.com", 2), ("one", "gcu.enflame.com", 1)),
            request("other"),
        ],
        whole(0, 1),
    ),
    "an alternative that is more than a claim can hold is passed by": (
        pool("a", THIRTY_THREE),
        [],
        [any_of(("too-many", ANY, 33), ("one", ANY, 1))],
        ["d00"],
    ),
    "no alternative fits": (
        pool("a", cards(1)),
        [],
        [any_of(("three", "gcu.enflame.com", 3), ("two", "gcu.enflame.com", 2))],
        (
            "claim c, request r/three: 1 card: 1 free; 3 requested; "
            "claim c, request r/two: 1 card: 1 free; 2 requested"
        ),
    ),
    "admin access passes by what is held": (
        pool("a", cards(1, *MODES)),
        [allocated("x", "a", *names("whole", 0))],
        [request(**ADMIN)],
        whole(0),
    ),
    "admin access passes by the mode of the card": (
        pool("a", cards(1, *MODES)),
        [allocated("x", "a", *names("shared", 0), consumed=SHARE)],
        [request(**ADMIN)],
        whole(0),
    ),
    "admin access never gets a device twice in a claim": (
        pool("a", cards(1)),
        [],
        [request("x", **ADMIN), request("y", **ADMIN)],
        (
            "claim c, request x: 1 card: 1 free; 1 requested, but not all requests fit together; "
            "claim c, request y: 1 card: 1 free; 1 requested, but not all requests fit together"
        ),
    ),
    "admin access does not pass by taints": (
        pool("a", [device("whole", 0, taints=[UNHEALTHY])]),
        [],
        [request(**ADMIN)],
        "1 card: 1 unhealthy; 1 requested",
    ),
    "admin access of all": (
        pool("a", cards(2)),
        [allocated("x", "a", *names("whole", 0))],
        [request(**ADMIN, **ALL)],
        whole(0, 1),
    ),
    "admin access that others have is not counted": (
        pool("a", cards(1)),
        [allocated("x", "a", *names("whole", 0), adminAccess=True)],
        [request()],
        whole(0),
    ),
}
_late["metadata"]["name"] = "late"
_late["spec"]["pool"]["name"] = "gcu.enflame.com/late"


@pytest.mark.parametrize(("slices", "held", "requests", "expected"), CASES.values(), ids=CASES)
def test_form(
    slices: list[Object],
    held: list[Object],
    requests: list[Object],
    expected: list[str] | str,
) -> None:
    outcome = decide(slices, held, claim("c", requests), nodes=["a"])
    assert outcome == (("a", expected) if isinstance(expected, list) else expected)


@pytest.mark.parametrize(
    ("first", "second", "granted"),
    [
        pytest.param({}, ADMIN, True, id="admin access after another claim"),
        pytest.param(ADMIN, {}, False, id="another claim after admin access"),
        pytest.param(ADMIN, ADMIN, True, id="both with admin access"),
        pytest.param({}, {}, False, id="neither"),
    ],
)
def test_one_device_for_two_claims_of_a_pod(first: Object, second: Object, granted: bool) -> None:
    claims = claim("c", [request(**first)]), claim("d", [request(**second)])
    outcome = decide(pool("a", cards(1)), [], *claims, nodes=["a"])
    assert (outcome == ("a", whole(0, 0))) == granted


def test_earlier_alternatives_are_worth_another_node() -> None:
    """kube-scheduler scores nodes by the alternatives that they give."""
    slices = [*pool("a", cards(1)), *pool("b", cards(2))]
    two_or_one = any_of(("two", "gcu.enflame.com", 2), ("one", "gcu.enflame.com", 1))
    assert decide(slices, [], claim("c", [two_or_one])) == ("b", whole(0, 1))
