"""Stored files are as the code gives them, and one command writes those that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from tests import generated_docs
from tests.generated_docs import CHECKOUT
from tests.golden import STORED, write


@pytest.mark.parametrize("name", STORED)
def test_a_stored_file(name: str) -> None:
    assert (CHECKOUT / name).read_text(encoding="utf-8") == STORED[name](), "run `make golden`"


def test_each_stored_file_of_the_unit_tests_is_written() -> None:
    paths = [path.relative_to(CHECKOUT) for path in CHECKOUT.glob("tests/unit/**/*.*")]
    stored = [each for each in paths if each.suffix not in {".py", ".pyc"}]
    assert {str(each) for each in stored if "/." not in str(each)} == STORED.keys()


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    made: dict[str, Callable[[], str]] = {
        "same": lambda: "a\n",
        "other": lambda: "b\n",
        "new": lambda: "c\n",
    }
    (tmp_path / "same").write_text("a\n")
    (tmp_path / "other").write_text("a\n")
    assert write(tmp_path, made) == ["other", "new"]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: make() for name, make in made.items()
    }
    assert write(tmp_path, made) == []


def test_the_tables_of_a_page_are_written(tmp_path: Path) -> None:
    for folder in ("docs", "charts"):
        copytree(CHECKOUT / folder, tmp_path / folder)
    generated_docs.write(tmp_path)  # `test_generated_docs` says what is stale
    page = tmp_path / "docs/user/reference.md"
    right = page.read_text(encoding="utf-8")
    page.write_text(right.replace("| `uuid` |", "| `id` |", 1), encoding="utf-8")
    assert generated_docs.write(tmp_path) == ["docs/user/reference.md"]
    assert page.read_text(encoding="utf-8") == right
