"""What selectors of one decision may cost together, with a clock of the test's own."""

from __future__ import annotations

import gc
from itertools import count

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.selector import selector
from dra_driver.selector.allowance import Allowance, AllowanceSpent
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors, _Selector
from dra_driver.selector.types import Type, Unifier
from tests.unit.selector.expressions.table import DEVICE, DRIVER, spelled

INPUT = SelectorInput.of(DRIVER, DEVICE)
FORTY = f"[{', '.join(['1'] * 40)}]"
THREE_LOOPS = f"{FORTY}.all(a, {FORTY}.all(b, {FORTY}.all(c, a == b)))"
LONG = "lists.range(20000).map(x, 'a').join('')"

REFUSED = {
    "a pattern that fills the memory": (r"'x'.matches(r'\pL{400}')", "pattern too large"),
    "a built one": (r"'x'.matches(r'\pL{400}' + 'a')", "pattern too large"),
    "a long pattern": (f"'x'.matches('{'a' * 1_025}')", "longer than 1024 characters"),
    "many literal patterns": (
        "||".join(f"'x'.matches('{n:08}')" for n in range(400)),
        "it costs more than 1000000 steps",
    ),
    "many built patterns": (
        "lists.range(600).all(n, !'x'.matches(string(n)))",
        "it costs more than 1000000 steps",
    ),
    "a search for a large pattern": (f"{LONG}.matches('(a?){{500}}b')", "a search through 20000"),
    "a large sort": (
        "lists.range(40000).map(x, -x).sort().size() == 0",
        "it costs more than 1000000 steps",
    ),
    "searches that all go to the end": (f"{LONG}.findAll('a+?b|a').size() == 0", "1000000 steps"),
}


@pytest.mark.parametrize(("expression", "reason"), REFUSED.values(), ids=REFUSED)
def test_patterns_and_searches_are_paid_for(expression: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Selectors().matches(expression, INPUT)


def test_a_literal_pattern_is_paid_for_once() -> None:
    """Or a fleet with a few thousand kinds of device could not have one."""
    selectors = Selectors()
    expression = spelled(f"GCU.uuid.matches('{'[A-Z]' * 50}') || true")
    assert all(selectors.matches(expression, each) for each in devices(3_000))


class Clock:
    """Each look at it takes a second."""

    def __init__(self) -> None:
        self._ticks = count()
        self.stands = False

    def __call__(self) -> float:
        return 0.0 if self.stands else float(next(self._ticks))


def devices(number: int) -> list[SelectorInput]:
    return [
        SelectorInput.of(DRIVER, {"attributes": {"uuid": {"string": f"GCU-{n}"}}})
        for n in range(number)
    ]


def test_a_stopped_decision_goes_on_where_it_was() -> None:
    allowance = Allowance(Clock())
    selectors = Selectors(allowance)
    expression, fleet = spelled("GCU.uuid != ''"), devices(500)
    for _ in range(5):
        allowance.begin(100)
        with pytest.raises(AllowanceSpent) as stopped:
            [selectors.matches(expression, each) for each in fleet]
        assert stopped.value.limit == "100 s"
        assert (stopped.value.where, stopped.value.selector) == ("selectors", expression)
    allowance.begin(100)
    assert all(selectors.matches(expression, each) for each in fleet)
    assert selectors.evaluations == len(fleet)


STOPPED = {
    "parsing": " && ".join(["true"] * 900),
    "checking patterns": " || ".join(f"'x'.matches('{n}')" for n in range(100)),
    "evaluating": THREE_LOOPS,
    "in what absorbs errors": f"{THREE_LOOPS} || true",
}


@pytest.mark.parametrize("expression", STOPPED.values(), ids=STOPPED)
def test_the_deadline_is_seen_and_is_no_answer(expression: str) -> None:
    clock = Clock()
    selectors = Selectors(Allowance(clock))
    selectors.allowance.begin(5)
    with pytest.raises(AllowanceSpent):
        selectors.matches(expression, INPUT)
    clock.stands = True
    selectors.allowance.begin(5)
    assert selectors.matches(expression, INPUT) in {True, False}


def test_the_deadline_is_seen_between_the_elements_of_a_literal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The type of each may be found through those of all others."""
    found: list[Type] = []
    final = Unifier.final

    def slow(self: Unifier, kind: Type) -> Type:
        found.append(kind)
        return final(self, kind)

    monkeypatch.setattr(Unifier, "final", slow)
    selectors = Selectors(Allowance(lambda: float(len(found))))
    selectors.allowance.begin(100)
    with pytest.raises(AllowanceSpent):
        selectors.matches(f"[{', '.join(['[]'] * 300)}].size() == 300", INPUT)
    assert len(found) < 200


def test_all_selectors_of_a_decision_have_one_budget() -> None:
    selectors = Selectors(Allowance(lambda: 0.0))
    expressions = [f"{THREE_LOOPS} || {n} > 0" for n in range(20)]
    selectors.allowance.begin()
    with pytest.raises(AllowanceSpent, match="2000000 steps of its selectors"):
        [selectors.matches(each, INPUT) for each in expressions]
    done = selectors.evaluations
    assert 0 < done < 20
    selectors.allowance.begin()
    [selectors.matches(each, INPUT) for each in expressions[:done]]
    assert selectors.evaluations == done


def test_little_is_kept_of_many_long_expressions() -> None:
    gc.collect()
    before = sum(isinstance(each, _Selector) for each in gc.get_objects())
    selectors = Selectors()
    for n in range(100):
        assert selectors.matches(f"'{'a' * 4_000}' != '{n}'", INPUT)
    gc.collect()
    after = sum(isinstance(each, _Selector) for each in gc.get_objects())
    assert 10 < after - before <= 256 * 1024 // 4_000


def test_answers_are_dropped_with_their_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector, "_ANSWERS", 100)
    selectors = Selectors()
    fleet = devices(20)
    expressions = [spelled(f"GCU.uuid != '{n}'") for n in range(6)]
    for expression in expressions:
        assert all(selectors.matches(expression, each) for each in fleet)
    assert selectors.evaluations == 120
    assert all(selectors.matches(expressions[-1], each) for each in fleet)
    assert selectors.evaluations == 120  # known
    assert all(selectors.matches(expressions[0], each) for each in fleet)
    assert selectors.evaluations == 140  # dropped


def test_one_expression_keeps_no_more_answers_than_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector, "_ANSWERS", 100)
    selectors = Selectors()
    expression, fleet = spelled("GCU.uuid != ''"), devices(250)
    assert all(selectors.matches(expression, each) for each in fleet)
    assert all(selectors.matches(expression, each) for each in fleet[-40:])
    assert selectors.evaluations == 250


def test_people_are_told_of_long_expressions_in_short() -> None:
    with pytest.raises(InvalidValue) as refused:
        Selectors().matches(f"'{'a' * 5_000}'.matches('(') || true", INPUT)
    assert len(str(refused.value)) < 700
    assert "is not a regular expression" in str(refused.value)
