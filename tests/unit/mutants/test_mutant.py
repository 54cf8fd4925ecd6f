"""A mutant is found again in another state of its file."""

from __future__ import annotations

import pytest

from tests.mutants.edits import Kind, edits
from tests.mutants.mutant import Mutant, as_json, from_json, line_of

SOURCE = """\
LIMIT = 1


class Card:
    size = 2

    def grow(self, by=3):
        def twice():
            return by * 4

        self.size += 5

    def __init__(self):
        self.x = 6


def grow(by):
    try:
        f(7)
    except OSError:
        f(8)
"""


def of_number(number: int, source: str = SOURCE) -> Mutant:
    [found] = [
        each
        for each in edits(source)
        if each.kind is Kind.NUMBER and source[each.start : each.end] == str(number)
    ]
    return Mutant.of("card.py", source, found)


@pytest.mark.parametrize(
    ("number", "name", "text"),
    [
        (1, "", "LIMIT = 1"),
        (2, "Card", "size = 2"),
        (3, "Card.grow", None),
        (4, "Card.grow.twice", "def twice():\n            return by * 4"),
        (5, "Card.grow", None),
        (6, "Card.__init__", "def __init__(self):\n        self.x = 6"),
        (7, "grow", None),
        (8, "grow", None),
    ],
)
def test_the_function_around_a_fault(number: int, name: str, text: str | None) -> None:
    found = of_number(number)
    assert found.name == name
    assert text in {None, found.text}
    assert found.text[found.start : found.end] == str(number)


@pytest.mark.parametrize("number", range(1, 9))
def test_it_is_found_where_lines_and_other_functions_changed(number: int) -> None:
    changed = '"""Says."""\n\n' + SOURCE.replace("LIMIT = 1", "LIMIT = 1  # card")
    changed = changed.replace("class Card:", "class Card:\n    other: int\n")
    edit = of_number(number).edit(changed)
    assert edit is not None
    assert edit.applied(changed) == changed.replace(str(number), str(number + 1))


def test_it_is_not_there_where_its_function_changed() -> None:
    changed = SOURCE.replace("f(8)", "f(9)")
    assert of_number(7).edit(changed) is None
    assert of_number(6).edit(changed) is not None
    assert of_number(6).edit("") is None


def test_of_equal_functions_it_is_the_same_one() -> None:
    source = "class A:\n    def f():\n        g(1)\n\n\nclass B:\n    def f():\n        g(1)\n"
    one, two = (
        Mutant.of("x.py", source, each) for each in edits(source) if each.kind is Kind.NUMBER
    )
    assert (one.text, one.occurrence, two.occurrence) == (two.text, 0, 1)
    lines = [edit and line_of(source, edit) for edit in (one.edit(source), two.edit(source))]
    assert lines == [3, 8]
    assert two.edit(source.partition("class B")[0]) is None


def test_a_longer_line_is_another_statement() -> None:
    assert of_number(1, "X = 1\n").edit("XX = 1\nX = 10\n") is None


def test_a_class_of_which_only_the_head_has_a_fault() -> None:
    [found] = [
        Mutant.of("x.py", "class A(b=1):\n    x: int\n", each)
        for each in edits("class A(b=1):\n    x: int\n")
    ]
    assert (found.name, found.text) == ("A", "class A(b=1):\n    x: int")


def test_mutants_are_kept_in_a_file() -> None:
    mutants = [of_number(number) for number in range(1, 9)]
    assert from_json(as_json(mutants)) == mutants


@pytest.mark.parametrize(
    ("number", "told"),
    [(1, "LIMIT = 1 => LIMIT = 2"), (8, "f(8) => f(9)")],
)
def test_what_people_read(number: int, told: str) -> None:
    assert str(of_number(number)) == told
