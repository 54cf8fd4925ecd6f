from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.errors import InvalidValue
from dra_driver.model.identifiers import check_id


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a/b", "a.b", "-a", "a-", "a\n", "ä", "a" * 64, "a\0b", " a"],
    ids=repr,
)
def test_an_identifier_that_is_no_file_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is not a UID"):
        check_id(text, "UID")


@given(st.text())
def test_no_identifier_leaves_its_folder(text: str) -> None:
    try:
        check_id(text, "UID")
    except InvalidValue:
        return
    assert text.isascii()
    assert not set(text) & set("/.\0")
