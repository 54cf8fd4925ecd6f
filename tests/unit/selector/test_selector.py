"""What expressions mean for a device, and what becomes of those that mean nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.table import (
    DEVICE,
    DRIVER,
    THEMES,
    THEMES_SINCE_1_37,
    TOO_COSTLY,
    spelled,
)

INPUT = SelectorInput.of(DRIVER, DEVICE)


@pytest.fixture(scope="module")
def selectors() -> Selectors:
    return Selectors()


def table(outcome: str) -> list[Any]:
    return [
        pytest.param(spelled(expression), id=f"{name}: {expression}")
        for name, theme in (THEMES | THEMES_SINCE_1_37).items()
        for expression in getattr(theme, outcome)
    ]


@pytest.mark.parametrize("expression", table("matches"))
def test_matches(selectors: Selectors, expression: str) -> None:
    assert selectors.matches(expression, INPUT) is True


@pytest.mark.parametrize("expression", table("differs"))
def test_does_not_match(selectors: Selectors, expression: str) -> None:
    assert selectors.matches(expression, INPUT) is False


@pytest.mark.parametrize("expression", table("fails"))
def test_cannot_be_evaluated(selectors: Selectors, expression: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        selectors.matches(expression, INPUT)
    assert repr(expression) in refused.value.what


@pytest.mark.parametrize("expression", TOO_COSTLY)
def test_what_the_api_server_would_not_store_has_its_meaning(
    selectors: Selectors, expression: str
) -> None:
    assert selectors.matches(spelled(expression), INPUT) is True


UNSUPPORTED = {
    "[1].exists(i, v, v == 1)": "the macro exists() with two variables is not supported",
    "[1].transformList(i, v, v) == [1]": "the macro transformList() with two variables",
    "sets.contains([1], [1])": "the function sets.contains() is not supported",
    'isIP("1.2.3.4") || true': "the function isIP() is not supported",
    'cidr("10.0.0.0/8").containsIP("10.1.2.3")': "the function cidr() is not supported",
    'url("https://a.b").getHost() == "a.b"': "the function url() is not supported",
    'format.named("uuid").hasValue()': "the function format.named() is not supported",
    "type(1) == int": "the function type() is not supported",
    "dyn(1) == int": "the type int as a value is not supported",
    'timestamp("2020-01-01T00:00:00Z").getFullYear() == 2020': "the function getFullYear()",
    "google.protobuf.Int32Value{value: 1} == 1": "the construction of a message",
    'double("0x1p4") == 16.0 || true': "a hexadecimal double is not supported",
    "{null: 1}.size() == 1 || true": "unsupported key type: null_type",
    "{dyn(optional.of(1)): 1}.size() == 1": "unsupported key type: optional_type",
    '"%.5000f".format([1.0]) == ""': "a precision of more than",
    f"{'9' * 5000} > 1": "is out of range",
    'quantity("1e99999") == quantity("1") || true': "a quantity with that many digits",
}
VERSIONS_DIFFER = (
    'cel.bind(a, device.?attributes, !a["nope"].hasValue() && !has(a.nope))',
    'cel.bind(a, device.?attributes, a[?"gcu.enflame.com"].optMap(g, has(g.x)).orValue(true))',
    "cel.bind(c, device.?capacity, c.value().size() == 1 || true)",
    "cel.bind(a, device.?attributes, a != optional.of({}))",
    'optional.of(device.attributes)["nope"].hasValue()',
    "has(optional.of(device.attributes).nope)",
    "(true ? optional.of(device.attributes) : optional.none()).nope.hasValue()",
    "GCU.?model.optMap(m, device.attributes).value().size() == 2",
    "[device.?attributes].exists(a, a.nope.hasValue())",
    "cel.bind(m, CAPACITY.?memory, m.value().isInteger())",
    "cel.bind(m, CAPACITY.?memory, m in [CAPACITY.?memory])",
    "cel.bind(v, GCU.?firmware, v != v)",
    'cel.bind(v, GCU.?firmware, [v] == [optional.of(semver("1.0.0"))])',
    "GCU.?firmware.optMap(v, v).value().major() == 1 || true",
)


@pytest.mark.parametrize("expression", VERSIONS_DIFFER)
def test_what_1_36_and_1_37_may_answer_differently_is_refused(
    selectors: Selectors, expression: str
) -> None:
    with pytest.raises(InvalidValue, match="holds depends on the version of Kubernetes"):
        selectors.matches(spelled(expression), INPUT)


@pytest.mark.parametrize(("expression", "reason"), UNSUPPORTED.items(), ids=range(len(UNSUPPORTED)))
def test_what_upstream_knows_and_we_do_not_is_refused_by_name(
    selectors: Selectors, expression: str, reason: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        selectors.matches(expression, INPUT)
    assert reason in refused.value.what


REASONS = {
    "GCU.nothing == 1": "no such key: nothing",
    "GCU.model": "its result is not a bool but a string",
    "device.driver": "its result is not a bool but a string",
    'GCU.nothing == 1 ? "a" : "b"': "its result is not a bool but a string",
    "GCU.model < 1": "no such overload: _<_(string, int)",
    "device.driver == 1": "found no matching overload for == of (string, int)",
    "devices.driver == 'x'": "undeclared reference to 'devices'",
    "device.nothing == 1": "a device has no field 'nothing'",
    "size(1, 2) == 1": "found no matching overload for size() of (int, int)",
    "GCU.model.matches('(')": "is not a regular expression",
    '"\ud800" == ""': "half of a surrogate pair",
    "has(device)": "has() takes a field selection",
    "[1].all(1, true)": "all() takes a variable and an expression",
    "true &&\n  == 1": "syntax error at line 2, column 3",
    "device.driver ==": "syntax error at line 1, column 15",
    "": "syntax error at line 1, column 1",
    '"a == 1': "syntax error at line 1, column 1",
    '["\\n", 1 == 1)': "syntax error at line 1, column 14",
    "size(?[1]) == 1": "syntax error at line 1, column 6",
    "GCU.?size() == 1": "syntax error at line 1, column 39",
    "GCU. 7.x == 1": "syntax error at line 1, column 39",
    "[?1] == [1]": "an element with a question mark is optional, and not a int",
    "GCU.?model": "its result is not a bool but a optional_type(dyn)",
}


@pytest.mark.parametrize(("expression", "reason"), REASONS.items(), ids=REASONS)
def test_reasons(selectors: Selectors, expression: str, reason: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        selectors.matches(spelled(expression), INPUT)
    assert reason in refused.value.what


@pytest.mark.parametrize(
    ("expressions", "is_excluded"),
    [
        pytest.param(['device.driver == "other.example.com"'], True, id="another driver"),
        pytest.param(['device.driver.startsWith("other.")'], True, id="others by their name"),
        pytest.param(['device.driver != "other.example.com"'], False, id="all but another one"),
        pytest.param(["true", 'device.driver == "other"'], True, id="one of several says so"),
        pytest.param(["false"], False, id="not about the driver"),
        pytest.param(
            ['device.driver == "other" && device.allowMultipleAllocations'], False, id="and more"
        ),
        pytest.param(["device.driver"], False, id="no answer"),
        pytest.param(["device."], False, id="no expression"),
        pytest.param([], False, id="none"),
    ],
)
def test_excludes(selectors: Selectors, expressions: list[str], is_excluded: bool) -> None:
    assert selectors.excludes(expressions, "gcu.enflame.com") is is_excluded
