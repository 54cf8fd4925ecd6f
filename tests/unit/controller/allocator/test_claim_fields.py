"""Fields of a claim that the allocator does not honour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from controller.allocator.claim_request import ClaimRequest, parse_claim
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.names import CLASS_SHARED
from tests.unit.controller.allocator.build import CLASSES, claim, first_available, request

CEL = {"cel": {"expression": "true"}}
DERIVED = [{"name": "numa", "expression": "1"}]
REMEDY = (
    "is not supported; create the claim again without it; or, to ignore it in the whole cluster, "
    "add {} to controller.ignoredClaimFields of the chart"
)


def parse(wanted: Object, *ignored: str) -> ClaimRequest:
    return parse_claim(wanted, CLASSES, frozenset(ignored))


def with_devices(**fields: Any) -> Object:
    wanted = claim("c")
    wanted["spec"]["devices"] |= fields
    return wanted


def with_spec(**fields: Any) -> Object:
    wanted = claim("c")
    wanted["spec"] |= fields
    return wanted


def with_limits(entry: Object) -> Object:
    entry["exactly"]["capacity"]["limits"] = {"slices": "3"}
    return entry


def constrained(**fields: Any) -> Object:
    return claim("c", [request()], constraints=[{"requests": ["gcu"], **fields}])


UNKNOWN: Mapping[str, tuple[Object, str, str]] = {
    "of a request's form": (
        claim("c", [request(derivedAttributes=DERIVED)]),
        "derivedAttributes",
        "claim default/c, request gcu: the field derivedAttributes",
    ),
    "of a subrequest": (
        claim("c", [first_available("r", request("one", derivedAttributes=DERIVED))]),
        "derivedAttributes",
        "claim default/c, request r/one: the field derivedAttributes",
    ),
    "of a request": (
        claim("c", [request() | {"optional": True}]),
        "optional",
        "claim default/c, request gcu: the field optional",
    ),
    "of a selector": (
        claim("c", [request(selectors=[CEL | {"weight": 3}])]),
        "weight",
        "claim default/c, request gcu, a selector: the field weight",
    ),
    "another kind of selector": (
        claim("c", [request(selectors=[{"jsonPath": "x"}])]),
        "jsonPath",
        "claim default/c, request gcu, a selector: the field jsonPath",
    ),
    "of a CEL selector": (
        claim("c", [request(selectors=[{"cel": CEL["cel"] | {"mode": "Any"}}])]),
        "mode",
        "claim default/c, request gcu, a selector: the field mode",
    ),
    "of the capacity": (
        claim("c", [with_limits(request(cls=CLASS_SHARED, capacity={"slices": "2"}))]),
        "limits",
        "claim default/c, request gcu, capacity: the field limits",
    ),
    "of a toleration": (
        claim("c", [request(tolerations=[{"operator": "Exists", "until": "later"}])]),
        "until",
        "claim default/c, request gcu, a toleration: the field until",
    ),
    "of a constraint": (
        constrained(matchAttribute="gcu.enflame.com/card", scope="Node"),
        "scope",
        "claim default/c, a constraint: the field scope",
    ),
    "another kind of constraint": (
        constrained(nearAttribute="gcu.enflame.com/card"),
        "nearAttribute",
        "claim default/c, a constraint: the field nearAttribute",
    ),
    "of all requests": (
        with_devices(score={}),
        "score",
        "claim default/c: the field score",
    ),
    "beside the devices": (
        with_spec(controller="x"),
        "controller",
        "claim default/c: the field controller",
    ),
}
CASES = pytest.mark.parametrize(("wanted", "field", "words"), UNKNOWN.values(), ids=UNKNOWN)


@CASES
def test_a_field_that_is_not_honoured_is_refused_by_name(
    wanted: Object, field: str, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        parse(wanted, "anotherField")
    assert str(refused.value) == f"{words} {REMEDY.format(words.rpartition(' ')[2])}"


@CASES
def test_unless_it_may_be_ignored(wanted: Object, field: str, words: str) -> None:
    assert len(parse(wanted, field).requests) == 1


def test_what_is_null_is_not_there() -> None:
    assert len(parse(claim("c", [request(derivedAttributes=None)])).requests) == 1


def test_what_remains_of_ignored_fields() -> None:
    selectors = [{"jsonPath": "x"}, CEL]
    constraints = [
        {"nearAttribute": "x"},
        {"matchAttribute": "gcu.enflame.com/card", "nearAttribute": "x"},
    ]
    wanted = claim("c", [request(selectors=selectors)], constraints=constraints)
    found = parse(wanted, "jsonPath", "nearAttribute")
    [exact] = found.exact_requests()
    assert exact.device_request.selectors[-1] == "true"
    assert [each.attribute for each in found.constraints] == ["gcu.enflame.com/card"]


def test_a_field_that_is_honoured_cannot_be_ignored() -> None:
    wanted = claim(
        "c", [request(selectors=[CEL])], constraints=[{"matchAttribute": "gcu.enflame.com/card"}]
    )
    assert parse(wanted, "cel", "matchAttribute").shape == parse(wanted).shape
