"""Opaque configuration of claims and classes: whom it is for, who wins, what it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controller.allocator.claim_request import parse_claim
from controller.allocator.packing.policy import Policy
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.model.claims.amounts import config_applies
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing, PackingChoice
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import DRIVER
from tests.unit.controller.allocator.build import (
    CLASSES,
    allocated,
    claim,
    device_class,
    first_available,
    pool,
    request,
)
from tests.unit.controller.allocator.decide import (
    DRS,
    MODES,
    SHARE,
    SHARED,
    cards,
    decide,
    names,
)

BINPACK, SPREAD = Packing.BINPACK, Packing.SPREAD


def says(*requests: str, driver: str = DRIVER, **packing: str) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": packing}
    entry: Object = {"opaque": {"driver": driver, "parameters": parameters}}
    return entry | ({"requests": list(requests)} if requests else {})


def said(
    of_claim: Sequence[Object], of_class: Sequence[Object] = (), *requests: Object
) -> dict[str, PackingChoice]:
    """By request what holds for it."""
    name = "gcu.enflame.com"
    classes = CLASSES | {name: device_class(name, "whole", config=of_class)}
    wanted = parse_claim(claim("c", requests or [request()], config=of_claim), classes)
    return {
        exact.name: exact.device_request.packing
        for each in wanted.requests
        for exact in each.alternatives
    }


TWO = request("x"), request("y", cls=SHARED)
EITHER = (first_available("r", request("big", count=2), request("small", cls=SHARED)),)
NOTHING, NODES = PackingChoice(), PackingChoice(nodes=SPREAD)
CASES: dict[str, tuple[list[Object], list[Object], Any, dict[str, PackingChoice]]] = {
    "nothing": ([], [], (), {"gcu": NOTHING}),
    "the claim": ([says(nodes="spread")], [], (), {"gcu": NODES}),
    "the class": ([], [says(nodes="spread")], (), {"gcu": NODES}),
    "the claim wins over the class": (
        [says(nodes="spread")],
        [says(nodes="binpack", cards="spread")],
        (),
        {"gcu": PackingChoice(SPREAD, SPREAD)},
    ),
    "the later entry wins": (
        [says(nodes="binpack"), says(nodes="spread")],
        [],
        (),
        {"gcu": NODES},
    ),
    "another driver's": (
        [says(driver="nic.example.com", nodes="spread")],
        [],
        (),
        {"gcu": NOTHING},
    ),
    "for one request": ([says("y", nodes="spread")], [], TWO, {"x": NOTHING, "y": NODES}),
    "of one request's class": ([], [says(nodes="spread")], TWO, {"x": NODES, "y": NOTHING}),
    "for a request with alternatives": (
        [says("r", nodes="spread")],
        [],
        EITHER,
        {"r/big": NODES, "r/small": NODES},
    ),
    "for one alternative": (
        [says("r/small", nodes="spread")],
        [],
        EITHER,
        {"r/big": NOTHING, "r/small": NODES},
    ),
}


@pytest.mark.parametrize(
    ("of_claim", "of_class", "requests", "expected"), CASES.values(), ids=CASES
)
def test_what_holds_for_a_request(
    of_claim: list[Object],
    of_class: list[Object],
    requests: Any,
    expected: dict[str, PackingChoice],
) -> None:
    assert said(of_claim, of_class, *requests) == expected


@pytest.mark.parametrize(
    ("of_claim", "of_class", "owner"),
    [
        pytest.param([says(node="spread")], [], "of claim default/c is", id="the claim's"),
        pytest.param([], [says(node="spread")], "of the DeviceClass gcu", id="the class's"),
    ],
)
def test_wrong_configuration_is_refused_before_anything_is_searched(
    of_claim: list[Object], of_class: list[Object], owner: str
) -> None:
    with pytest.raises(InvalidValue, match=f"{owner}.*the field packing.node is unknown"):
        said(of_claim, of_class)


def test_an_entry_without_requests_is_for_all() -> None:
    assert config_applies({}, "x")
    assert config_applies({"requests": []}, "x/y")
    assert not config_applies({"requests": ["x/y"]}, "x")


TWO_NODES = [*pool("a", cards(3, *MODES)), *pool("b", cards(3, *MODES))]
USED_A = [allocated("s", "a", *names("shared", 0), consumed={"slices": "3"})]
SLICE = request(cls=SHARED, capacity=SHARE)
TWO_SLICES = [request("x", cls=SHARED, capacity=SHARE), request("y", cls=SHARED, capacity=SHARE)]
CHOSEN: dict[str, tuple[list[Object], list[Object], Policy, tuple[str, list[int]]]] = {
    "as is set for all": ([SLICE], [], Policy(), ("a", [0])),
    "one claim spreads over nodes": ([SLICE], [says(nodes="spread")], Policy(), ("b", [2])),
    "one claim spreads over cards": ([SLICE], [says(cards="spread")], Policy(), ("a", [1])),
    "one claim is packed where all are spread": (
        [SLICE],
        [says(nodes="binpack", cards="binpack")],
        Policy(SPREAD, SPREAD),
        ("a", [0]),
    ),
    "one request of two spreads over cards": (
        TWO_SLICES,
        [says("y", cards="spread")],
        Policy(),
        ("a", [0, 1]),
    ),
    "one request of two is packed": (
        TWO_SLICES,
        [says("x", cards="binpack")],
        Policy(cards=SPREAD),
        ("a", [0, 1]),
    ),
    "where requests differ about nodes": (
        TWO_SLICES,
        [says("x", nodes="binpack"), says("y", nodes="spread")],
        Policy(),
        ("b", [2, 2]),  # the card without a neighbour,
    ),
}


@pytest.mark.parametrize(("requests", "config", "policy", "expected"), CHOSEN.values(), ids=CHOSEN)
def test_chosen(
    requests: list[Object],
    config: list[Object],
    policy: Policy,
    expected: tuple[str, list[int]],
) -> None:
    node, buses = expected
    wanted = claim("c", requests, config=config)
    found = [name.removesuffix("-00-0") for name in names("shared", *buses)]
    assert decide(TWO_NODES, USED_A, wanted, policy=policy) == (node, found)


def test_claims_of_one_pod_are_spread_if_one_of_them_is() -> None:
    packed = claim("c", [SLICE], config=[says(nodes="binpack")])
    spread = claim("d", [SLICE], config=[says(nodes="spread")])
    outcome = decide(TWO_NODES, USED_A, packed, spread)
    assert outcome[0] == "b"


def asks(*requests: str, **amounts: int) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **amounts}
    entry: Object = {"opaque": {"driver": DRIVER, "parameters": parameters}}
    return entry | ({"requests": list(requests)} if requests else {})


SHARED_REQUEST, DRS_REQUEST = request(cls=SHARED), request(cls=DRS)
TWO_SHARED = [request("x", cls=SHARED), request("y", cls=SHARED)]
SHARED_FIRST = [
    first_available("r", request("many", cls=SHARED), request("whole")),
]
AMOUNTS: dict[str, tuple[list[Object], list[Object], dict[str, dict[str, str]]]] = {
    "slices": ([SHARED_REQUEST], [asks("gcu", slices=2)], {"gcu": {"slices": "2"}}),
    "a size": ([DRS_REQUEST], [asks("gcu", size=3)], {"gcu": {"size": "3"}}),
    "for all requests": (
        TWO_SHARED,
        [asks(slices=2)],
        {"x": {"slices": "2"}, "y": {"slices": "2"}},
    ),
    "for one request": (TWO_SHARED, [asks("y", slices=2)], {"x": {}, "y": {"slices": "2"}}),
    "the later entry wins": (
        [SHARED_REQUEST],
        [asks("gcu", slices=2), asks("gcu", slices=3), says("gcu", nodes="spread")],
        {"gcu": {"slices": "3"}},
    ),
    "for one alternative": (
        SHARED_FIRST,
        [asks("r/many", slices=4)],
        {"r/many": {"slices": "4"}, "r/whole": {}},
    ),
    "both forms agree": (
        [request(cls=SHARED, capacity={"slices": "2"})],
        [asks("gcu", slices=2)],
        {"gcu": {"slices": "2"}},
    ),
    "both forms agree, written otherwise": (
        [request(cls=SHARED, capacity={"slices": "2000m"})],
        [asks("gcu", slices=2)],
        {"gcu": {"slices": "2000m"}},
    ),
}


@pytest.mark.parametrize(("requests", "config", "expected"), AMOUNTS.values(), ids=AMOUNTS)
def test_amounts(
    requests: list[Object], config: list[Object], expected: dict[str, dict[str, str]]
) -> None:
    wanted = parse_claim(claim("c", requests, config=config), CLASSES)
    assert {
        exact.name: {name: amount.text for name, amount in exact.device_request.capacity.items()}
        for each in wanted.requests
        for exact in each.alternatives
    } == expected


def test_forms_that_differ_are_refused() -> None:
    both = claim(
        "c", [request(cls=SHARED, capacity={"slices": "3"})], config=[asks("gcu", slices=2)]
    )
    with pytest.raises(
        Refused,
        match=r"claim default/c, request gcu: its GcuConfig asks for slices 2, and its "
        r"capacity.requests for 3; ask for the same amount in both",
    ):
        parse_claim(both, CLASSES)


def test_a_capacity_has_a_full_name_too() -> None:
    """As from Kubernetes 1.38 on kube-scheduler takes it (kubernetes#142202)."""
    full = request(cls=SHARED, capacity={"gcu.enflame.com/slices": "3"})
    short = request(cls=SHARED, capacity={"slices": "3"})
    parsed = [parse_claim(claim("c", [each]), CLASSES) for each in (full, short)]
    assert parsed[0].shape == parsed[1].shape
    with pytest.raises(Refused, match=r"its GcuConfig asks for slices 2, and its .* for 3"):
        parse_claim(claim("c", [full], config=[asks("gcu", slices=2)]), CLASSES)


def test_a_capacity_of_another_domain_is_refused() -> None:
    foreign = claim("c", [request(cls=SHARED, capacity={"a/b/c": "3"})])
    with pytest.raises(Refused, match=r"claim default/c, request gcu: no device .* a/b/c"):
        parse_claim(foreign, CLASSES)


def test_an_amount_in_a_class_is_refused() -> None:
    classes = CLASSES | {SHARED: device_class(SHARED, "shared", config=[asks(slices=2)])}
    with pytest.raises(Refused, match=f"the DeviceClass {SHARED} asks for slices"):
        parse_claim(claim("c", [SHARED_REQUEST]), classes)


def test_an_amount_is_searched_for() -> None:
    wanted = claim("c", [SHARED_REQUEST], config=[asks("gcu", slices=4)])
    assert decide(pool("a", cards(2, *MODES)), USED_A, wanted) == ("a", ["shared-0000-01"])
