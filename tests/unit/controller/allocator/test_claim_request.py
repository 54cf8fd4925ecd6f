"""Which claims are refused before anything is searched."""

from __future__ import annotations

import pytest

from controller.allocator.claim_request import parse_claim
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from tests.unit.controller.allocator.build import claim, first_available, request, state

OPAQUE = {"opaque": {"driver": "nic.example.com", "parameters": {}}}
REFUSED = {
    "an unknown form": ({"name": "r"}, "an unknown form of request is not supported"),
    "another form": (
        {"name": "r", "deviceClassName": "gcu.enflame.com", "count": 1},  # of v1beta1
        "an unknown form of request (count, deviceClassName) is not supported; use exactly",
    ),
    "two forms": (
        request() | {"firstAvailable": [{"name": "s", "deviceClassName": "gcu.enflame.com"}]},
        "request gcu: exactly together with firstAvailable is not supported",
    ),
    "an unknown mode": (request(allocationMode="Most"), "allocationMode Most is not supported"),
    "an unknown selector": (
        request(selectors=[{}]),
        "a selector that is not CEL is not supported",
    ),
    "no such class": (
        request(cls="none.example.com"),
        "DeviceClass none.example.com does not exist",
    ),
    "too many": (request(count=33), "requests 33 devices, and a claim can hold 32"),
}


@pytest.mark.parametrize(("entry", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_by_name(entry: Object, words: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_claim(claim("c", [entry]), state([]).classes)
    assert words in str(refused.value)
    assert "default/c" in str(refused.value)


def test_an_unknown_constraint_is_refused() -> None:
    with pytest.raises(Refused, match="a constraint of an unknown form is not supported"):
        parse_claim(claim("c", constraints=[{"requests": ["gcu"]}]), state([]).classes)


def test_a_constraint_of_two_kinds_is_refused() -> None:
    """The API server takes it, and kube-scheduler 1.37.1 drops the second kind."""
    both = {"matchAttribute": "gcu.enflame.com/card", "distinctAttribute": "gcu.enflame.com/model"}
    with pytest.raises(Refused, match="a constraint with matchAttribute and distinctAttribute"):
        parse_claim(claim("c", constraints=[both]), state([]).classes)


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        pytest.param([[32]], False, id="as many as a claim can hold"),
        pytest.param([[16], [17]], True, id="two requests"),
        pytest.param([[33, 1]], False, id="an alternative that asks less"),
        pytest.param([[33, 20], [13]], True, id="the least that alternatives ask"),
    ],
)
def test_the_number_of_results(counts: list[list[int]], refused: bool) -> None:
    requests = [
        first_available(f"r{n}", *(request(f"s{count}", count=count) for count in each))
        for n, each in enumerate(counts)
    ]
    wanted = claim("c", requests)
    if not refused:
        assert len(parse_claim(wanted, state([]).classes).requests) == len(counts)
        return
    with pytest.raises(Refused, match="requests 33 devices, and a claim can hold 32"):
        parse_claim(wanted, state([]).classes)


def test_more_configuration_than_an_allocation_can_hold() -> None:
    """Each entry stands once for each request that it names, as upstream writes it."""
    requests = [request(f"r{n}") for n in range(3)]
    config = [OPAQUE | {"requests": [each["name"] for each in requests]}] * 22
    with pytest.raises(Refused, match="needs 66 entries of configuration"):
        parse_claim(claim("c", requests, config=config), state([]).classes)
    fitting = claim("c", requests, config=config[1:])
    assert len(parse_claim(fitting, state([]).classes).requests) == 3
