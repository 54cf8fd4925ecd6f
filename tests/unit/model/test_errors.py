"""The error tree: its drawing is true, and an error is a sentence with a remedy."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import controller
import dra_driver
from dra_driver.model.errors import GcuError, InvalidValue

Parents = set[tuple[str, str]]
"""(class, the class above it)"""

_BRANCH = re.compile(r"    (?P<indent>[│ ]*)[├└]── (?P<name>\w+)")


def modules() -> Iterator[ModuleType]:
    """Every module of the product."""
    for package in (dra_driver, controller):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                yield importlib.import_module(module.name)


def subclasses(parent: type[GcuError] = GcuError) -> Iterator[type[GcuError]]:
    """Every error of the product below `parent`; those that tests define are left out."""
    for child in parent.__subclasses__():
        if child.__module__.startswith(("dra_driver.", "controller.")):
            yield child
            yield from subclasses(child)


def drawn(text: str) -> Iterator[tuple[str, str]]:
    """The branches drawn in a docstring; the line above a drawing's first branch is its root."""
    above: dict[int, str] = {}
    before = ""
    for line in text.splitlines():
        if match := _BRANCH.match(line):
            depth = len(match["indent"]) // 4 + 1
            if depth == 1 and 0 not in above:
                above[0] = before.split(maxsplit=1)[0]
            yield match["name"], above[depth - 1]
            above[depth] = match["name"]
        before = line


def test_the_drawings_show_every_error_of_the_project() -> None:
    drawings: Parents = set()
    for module in modules():
        if module.__name__.endswith("errors"):
            drawings |= set(drawn(module.__doc__ or ""))
    code = {(child.__name__, base.__name__) for child in subclasses() for base in child.__bases__}
    assert drawings == code, "draw new errors in dra_driver/model/errors.py"


def test_no_two_errors_have_one_name() -> None:
    list(modules())
    found = [child.__name__ for child in subclasses()]
    assert sorted(found) == sorted(set(found))


def test_every_error_says_what_it_is() -> None:
    list(modules())
    assert [child.__name__ for child in subclasses() if not child.__doc__] == []


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        ("free it", "card 0000:0d:00.0 is held by default/one; free it"),
        ("", "card 0000:0d:00.0 is held by default/one"),
    ],
    ids=["with a remedy", "without"],
)
def test_an_error_is_its_sentence_and_its_remedy(remedy: str, text: str) -> None:
    error = InvalidValue("card 0000:0d:00.0 is held by default/one", remedy=remedy)
    assert str(error) == text
    assert (error.what, error.remedy) == ("card 0000:0d:00.0 is held by default/one", remedy)
