"""Decisions: tables of states, claims and the devices chosen."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    UNHEALTHY,
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.allocator.decide import (
    DRS,
    MODES,
    SAME_SWITCH,
    SHARE,
    SHARED,
    cards,
    decide,
    names,
    whole,
)

CHOSEN = {
    "one card of one": ([*pool("a", cards(1))], [], [claim("c")], ("a", whole(0))),
    "the node with the fewest free cards": (
        [*pool("a", cards(3)), *pool("b", cards(2))],
        [],
        [claim("c")],
        ("b", whole(0)),
    ),
    "held cards do not count as free": (
        [*pool("a", cards(4)), *pool("b", cards(3))],
        [allocated("x", "a", *names("whole", 0, 1))],
        [claim("c")],
        ("a", whole(2)),
    ),
    "equal nodes go by name": (
        [*pool("b", cards(1)), *pool("a", cards(1))],
        [],
        [claim("c")],
        ("a", whole(0)),
    ),
    "two cards under one switch": (
        [*pool("a", cards(8))],
        [allocated("x", "a", *names("whole", 0))],
        [claim("c", [request(count=2)])],
        ("a", whole(2, 3)),
    ),
    "one card where a switch is broken already": (
        [*pool("a", cards(8))],
        [allocated("x", "a", *names("whole", 5))],
        [claim("c")],
        ("a", whole(4)),
    ),
    "four cards of one NUMA node": (
        [*pool("a", cards(8))],
        [allocated("x", "a", *names("whole", 0))],
        [claim("c", [request(count=4)])],
        ("a", whole(4, 5, 6, 7)),
    ),
    "requests of one claim share the preference": (
        [*pool("a", cards(8))],
        [allocated("x", "a", *names("whole", 0))],
        [claim("c", [request("one"), request("two")])],
        ("a", whole(2, 3)),
    ),
    "matchAttribute over all requests": (
        [*pool("a", cards(4))],
        [allocated("x", "a", *names("whole", 0))],
        [claim("c", [request("one"), request("two")], constraints=[SAME_SWITCH])],
        ("a", whole(2, 3)),
    ),
    "matchAttribute of one request only": (
        [*pool("a", cards(3))],
        [],
        [
            claim(
                "c",
                [request("pair", count=2), request("other")],
                constraints=[SAME_SWITCH | {"requests": ["pair"]}],
            )
        ],
        ("a", whole(0, 1, 2)),
    ),
    "backtracks over requests": (
        [*pool("a", cards(2))],
        [],
        [
            claim(
                "c",
                [
                    request("any"),
                    request(
                        "first",
                        selector='device.attributes["gcu.enflame.com"].card == "0000:00:00.0"',
                    ),
                ],
            )
        ],
        ("a", whole(1, 0)),
    ),
    "all claims of a pod on one node": (
        [*pool("a", cards(1)), *pool("b", cards(2))],
        [],
        [claim("c"), claim("d")],
        ("b", whole(0, 1)),
    ),
    "a selector of the request": (
        [*pool("a", cards(4))],
        [],
        [
            claim(
                "c",
                [request(selector='device.attributes["gcu.enflame.com"].card == "0000:03:00.0"')],
            )
        ],
        ("a", whole(3)),
    ),
    "a card in another mode is left alone": (
        [*pool("a", cards(2, *MODES))],
        [allocated("x", "a", *names("shared", 0), consumed=SHARE)],
        [claim("c")],
        ("a", whole(1)),
    ),
    "a share joins the shared card": (
        [*pool("a", cards(2, *MODES))],
        [allocated("x", "a", *names("shared", 1), consumed={"slices": "3"})],
        [claim("c", [request(cls=SHARED, capacity={"slices": "3"})])],
        ("a", ["shared-0000-01"]),
    ),
    "the shared card with the least left": (
        [*pool("a", cards(3, *MODES))],
        [
            allocated("x", "a", *names("shared", 0), consumed={"slices": "1"}),
            allocated("y", "a", *names("shared", 1), consumed={"slices": "3"}),
        ],
        [claim("c", [request(cls=SHARED, capacity={"slices": "2"})])],
        ("a", ["shared-0000-01"]),
    ),
    "a full shared card is passed by": (
        [*pool("a", cards(2, *MODES))],
        [allocated("x", "a", *names("shared", 0), consumed={"slices": "4"})],
        [claim("c", [request(cls=SHARED, capacity={"slices": "3"})])],
        ("a", ["shared-0000-01"]),
    ),
    "two requests of one claim on one DRS card": (
        [*pool("a", cards(2, *MODES))],
        [],
        [
            claim(
                "c",
                [
                    request("x", cls=DRS, capacity={"size": "2"}),
                    request("y", cls=DRS, capacity={"size": "3"}),
                ],
                constraints=[{"matchAttribute": "gcu.enflame.com/card"}],
            )
        ],
        ("a", ["drs-0000-00", "drs-0000-00"]),
    ),
    "modes of one pod do not meet on a card": (
        [*pool("a", cards(2, *MODES))],
        [],
        [claim("c", [request("s", cls=SHARED), request("w")])],
        ("a", ["shared-0000-00", "whole-0000-01"]),
    ),
    "an unhealthy card that is tolerated": (
        [*pool("a", [device("whole", 0, taints=[UNHEALTHY])])],
        [],
        [
            claim(
                "c",
                [request(tolerations=[{"key": "gcu.enflame.com/unhealthy", "operator": "Exists"}])],
            )
        ],
        ("a", whole(0)),
    ),
    "a capacity that fits": (
        [*pool("a", cards(1))],
        [],
        [claim("c", [request(capacity={"memory": "40Gi"})])],
        ("a", whole(0)),
    ),
    "administrative access holds nothing": (
        [*pool("a", cards(1))],
        [allocated("x", "a", *names("whole", 0), adminAccess=True)],
        [claim("c")],
        ("a", whole(0)),
    ),
}


@pytest.mark.parametrize(("slices", "held", "wanted", "expected"), CHOSEN.values(), ids=CHOSEN)
def test_chosen(
    slices: list[Object], held: list[Object], wanted: list[Object], expected: tuple[str, list[str]]
) -> None:
    assert decide(slices, held, *wanted) == expected
