"""Tables whose source is code are on their pages as the code has them."""

from __future__ import annotations

import pytest

from tests.generated_docs import CHECKOUT, FILES, TABLES, with_table


@pytest.mark.parametrize(("page", "name"), TABLES, ids=str)
def test_a_table(page: str, name: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    assert with_table(text, name, TABLES[page, name]()) == text, "run `make docs`"


@pytest.mark.parametrize("name", FILES)
def test_a_file(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    assert FILES[name](text) == text, "run `make docs`"


def test_a_page_without_a_place() -> None:
    with pytest.raises(ValueError, match="no place for the table 'metrics'"):
        with_table("<!-- begin metrics -->", "metrics", "")
