"""Hostile expressions end, with a reason: each would take hours where nothing bounded it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.interpreter.budget import LIMIT
from dra_driver.selector.selector import Selectors
from tests.unit.selector.expressions.table import DEVICE, DRIVER, spelled

INPUT = SelectorInput.of(DRIVER, DEVICE)
HUNDRED = f"[{', '.join(['1'] * 100)}]"
LONG = "a" * 2_000


def nested(wrap: Callable[[str], str], levels: int, core: str) -> str:
    for _ in range(levels):
        core = wrap(core)
    return core


def doubled(start: str) -> str:
    """The value, and forty times its double."""
    binds = [f"cel.bind(x0, {start}, "]
    binds += [f"cel.bind(x{n + 1}, x{n} + x{n}, " for n in range(40)]
    return "".join(binds) + "x40 == x40" + ")" * 41


def paired(start: str) -> str:
    """A list of two lists of two lists ..., each of which is one object."""
    binds = [f"cel.bind(x0, {start}, "]
    binds += [f"cel.bind(x{n + 1}, [x{n}, x{n}], " for n in range(40)]
    return "".join(binds) + "x40 == x40" + ")" * 41


COSTLY = {
    "loops in loops": f"{HUNDRED}.all(a, {HUNDRED}.all(b, {HUNDRED}.all(c, a == b)))",
    "a string that doubles": doubled('"ab"'),
    "a list that doubles": doubled("[1]"),
    "lists in lists": paired("[1]"),
    "maps in maps": paired('{"a": 1}'),
    "replacement": f'"{LONG}".replace("", "{LONG}").replace("", "{LONG}") == ""',
    "join": f'lists.range(2000).map(x, "").join("{LONG}") == ""',
    "range": "lists.range(9223372036854775807).size() == 1",
    "distinct": "lists.range(10000).distinct().size() == 1",
    "format": f'lists.range(10000).all(x, "%s".format(["{LONG}"]) != "")',
}


@pytest.mark.parametrize("expression", COSTLY.values(), ids=COSTLY)
def test_cost_is_bounded(expression: str) -> None:
    with pytest.raises(InvalidValue, match="it costs more than 1000000 steps"):
        Selectors().matches(expression, INPUT)


def test_a_costly_step_is_no_error_that_an_operator_absorbs() -> None:
    with pytest.raises(InvalidValue, match="it costs more than"):
        Selectors().matches(f"{COSTLY['range']} || true", INPUT)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(a*)*(a*)*b", "(.*)(.*)(.*)[0-9]"])
@pytest.mark.parametrize("function", ["matches", "find", "findAll"])
def test_patterns_never_backtrack(pattern: str, function: str) -> None:
    call = f"\"{'a' * 2_000}!!\".{function}('{pattern}')"
    assert Selectors().matches(f'{call} == {call} && "a".matches("a")', INPUT)


def test_a_pattern_that_would_fill_the_memory_is_refused() -> None:
    letters = r"\pL{1000}" * 20
    with pytest.raises(InvalidValue, match="pattern too large"):
        Selectors().matches(f'"a".matches(r"{letters}" + "") || true', INPUT)


def test_a_costly_expression_does_not_take_its_time_for_each_device() -> None:
    selectors = Selectors()
    costly = spelled(f"{HUNDRED}.all(a, {HUNDRED}.all(b, GCU.n >= 0 && a == b))")
    devices = [
        SelectorInput.of(DRIVER, {"attributes": {"n": {"int": number}}}) for number in range(100)
    ]
    for device in devices[:10]:
        assert selectors.matches(costly, device)
    with pytest.raises(InvalidValue, match="steps for each of"):
        [selectors.matches(costly, device) for device in devices]


TOO_DEEP = {
    "calls": nested(lambda core: f"size([{core}])", 200, "1"),
    "methods": '"a"' + ".trim()" * 200 + ' == "a"',
    "conditionals": nested(lambda core: f"false ? true : {core}", 200, "true"),
    "macros": nested(lambda core: f"[1].all(x, {core})", 120, "true"),
    "sums": "1" + " + 1" * 1_000 + " > 0",
}


@pytest.mark.parametrize("expression", TOO_DEEP.values(), ids=TOO_DEEP)
def test_depth_is_bounded(expression: str) -> None:
    with pytest.raises(InvalidValue, match="nested more than 100 levels deep"):
        Selectors().matches(expression, INPUT)


DEEP = {
    "parentheses": "(" * 2_000 + "true" + ")" * 2_000,
    "conjunctions": "true" + " && true" * 1_000,
    "negations": "!" * 2_000 + "true",
    "methods": '"a"' + ".trim()" * 95 + ' == "a"',
    "macros": nested(lambda core: f"[1].all(x, {core})", 95, "true"),
    "conditionals": nested(lambda core: f"false ? true : {core}", 95, "true"),
    "lists": nested(lambda core: f"[{core}]", 95, "1") + ".size() == 1",
}


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP)
def test_what_only_looks_deep_is_evaluated(expression: str) -> None:
    assert Selectors().matches(expression, INPUT)


def test_length_is_bounded() -> None:
    fits = f'"{"a" * (10 * 1024 - 8)}" != ""'
    assert len(fits) == 10 * 1024
    assert Selectors().matches(fits, INPUT)
    with pytest.raises(InvalidValue, match="longer than 10240 bytes"):
        Selectors().matches(f"{fits} ", INPUT)


@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''", 'r"', 'b"'])
def test_a_string_without_an_end_is_found_at_once(quote: str) -> None:
    with pytest.raises(InvalidValue, match="syntax error"):
        Selectors().matches(quote + r"\123" * 2_000, INPUT)


def test_what_an_expression_costs_is_known_once_it_was_evaluated() -> None:
    selectors = Selectors()
    cheap = "device.driver == 'other.example.com'"
    assert selectors.cost(cheap) == 0
    selectors.matches(cheap, INPUT)
    assert 0 < selectors.cost(cheap) < 2_000


@pytest.mark.parametrize(
    "expression", [COSTLY["loops in loops"], f"'x'.matches('{LONG}') ||" * 999]
)
def test_what_is_refused_costs_the_limit(expression: str) -> None:
    """In an evaluation, and before there is any."""
    selectors = Selectors()
    with pytest.raises(InvalidValue):
        selectors.matches(expression, INPUT)
    assert selectors.cost(expression) == LIMIT
