"""matchAttribute and distinctAttribute over one, several and all requests."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import (
    ANY,
    claim,
    first_available,
    plain,
    pool,
    request,
)
from tests.unit.controller.allocator.decide import decide

X = "gcu.enflame.com/x"
MATCH: Object = {"matchAttribute": X}
DISTINCT: Object = {"distinctAttribute": X}


def valued(*values: object) -> list[Object]:
    """Devices d0, d1, … with these values of the attribute; None for none."""
    return [
        plain(f"d{number}", attributes=None if value is None else {"x": value})
        for number, value in enumerate(values)
    ]


def one(name: str = "r", count: int = 1) -> Object:
    return request(name, cls=ANY, count=count)


CASES: dict[str, tuple[list[object], list[Object], Object, list[str] | None]] = {
    "match: one request": (["p", "q", "q"], [one(count=2)], MATCH, ["d1", "d2"]),
    "match: ints": ([1, 2, 2], [one(count=2)], MATCH, ["d1", "d2"]),
    "match: a kind of its own": (["1", 1, True], [one(count=2)], MATCH, None),
    "match: one device needs the attribute": ([None, "p"], [one()], MATCH, ["d1"]),
    "match: nothing has the attribute": ([None, None], [one()], MATCH, None),
    "match: all requests": (["p", "q", "q"], [one("r"), one("s")], MATCH, ["d1", "d2"]),
    "match: several requests": (
        ["p", "q", "q"],
        [one("other"), one("r"), one("s")],
        MATCH | {"requests": ["r", "s"]},
        ["d0", "d1", "d2"],
    ),
    "match: requests that are not named are free": (
        ["p", "q"],
        [one("r"), one("s")],
        MATCH | {"requests": ["r"]},
        ["d0", "d1"],
    ),
    "match: lists with a value in common": (
        [["a", "b"], ["b", "c"], ["c"]],
        [one(count=2)],
        MATCH,
        ["d0", "d1"],
    ),
    "match: one value that all lists have": (
        [["a", "b"], ["b", "c"], ["c", "a"]],
        [one(count=3)],
        MATCH,
        None,
    ),
    "match: a value and a list": (["a", ["b"], ["c", "a"]], [one(count=2)], MATCH, ["d0", "d2"]),
    "match: what was tried does not narrow what follows": (
        [["a", "b"], ["a"], ["b"], ["b", "c"]],
        [one(count=3)],
        MATCH,
        ["d0", "d2", "d3"],
    ),
    "match: a request with alternatives by its name": (
        ["p", "q", "q"],
        [first_available("r", one("sub", 2))],
        MATCH | {"requests": ["r"]},
        ["d1", "d2"],
    ),
    "match: one alternative by its own name": (
        ["p", "q"],
        [first_available("r", one("matched", 2), one("free", 2))],
        MATCH | {"requests": ["r/matched"]},
        ["d0", "d1"],
    ),
    "distinct: one request": (["p", "p", "q"], [one(count=2)], DISTINCT, ["d0", "d2"]),
    "distinct: too few values": (["p", "p"], [one(count=2)], DISTINCT, None),
    "distinct: three of one request": (["p", "q", "p"], [one(count=3)], DISTINCT, None),
    "distinct: kinds differ": (["1", 1], [one(count=2)], DISTINCT, ["d0", "d1"]),
    "distinct: one device needs the attribute": ([None, "p"], [one()], DISTINCT, ["d1"]),
    "distinct: all requests": (["p", "p", "q"], [one("r"), one("s")], DISTINCT, ["d0", "d2"]),
    "distinct: several requests": (
        ["p", "p", "q"],
        [one("r"), one("other"), one("s")],
        DISTINCT | {"requests": ["r", "s"]},
        ["d0", "d1", "d2"],
    ),
    "distinct: lists are disjoint": (
        [["a", "b"], ["b", "c"], ["c"]],
        [one(count=2)],
        DISTINCT,
        ["d0", "d2"],
    ),
    "all devices and a constraint": (
        ["p", "q"],
        [request("r", cls=ANY, allocationMode="All")],
        MATCH,
        None,
    ),
}


@pytest.mark.parametrize(("values", "requests", "limit", "expected"), CASES.values(), ids=CASES)
def test_constraint(
    values: list[object], requests: list[Object], limit: Object, expected: list[str] | None
) -> None:
    outcome = decide(
        pool("a", valued(*values)), [], claim("c", requests, constraints=[limit]), nodes=["a"]
    )
    assert outcome == ("a", expected) if expected else isinstance(outcome, str)


def test_constraints_bind_one_claim_only() -> None:
    wanted = [claim(name, [one()], constraints=[MATCH]) for name in ("c", "d")]
    outcome = decide(pool("a", valued("p", "q")), [], *wanted, nodes=["a"])
    assert outcome == ("a", ["d0", "d1"])


def test_two_constraints_hold_together() -> None:
    devices = [
        plain(name, attributes={"x": x, "y": y})
        for name, x, y in (("d0", 1, 1), ("d1", 1, 1), ("d2", 1, 2), ("d3", 2, 3))
    ]
    both = [MATCH, {"distinctAttribute": "gcu.enflame.com/y"}]
    outcome = decide(pool("a", devices), [], claim("c", [one(count=2)], constraints=both))
    assert outcome == ("a", ["d0", "d2"])


def test_a_qualified_name_stands_before_an_unqualified_one() -> None:
    devices = [plain(name, attributes={X: x, "x": "other"}) for name, x in (("d0", 1), ("d1", 2))]
    wanted = claim("c", [one(count=2)], constraints=[DISTINCT])
    assert decide(pool("a", devices), [], wanted) == ("a", ["d0", "d1"])


def test_the_reason_names_the_constraint() -> None:
    wanted = claim("c", [one(count=2)], constraints=[DISTINCT])
    outcome = decide(pool("a", valued("p", "p")), [], wanted)
    assert outcome == f"2 devices: 2 free; 2 requested with distinct {X}"
