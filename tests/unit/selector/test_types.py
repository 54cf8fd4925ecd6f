"""What the type checker knows of types that meet in one list."""

from __future__ import annotations

import pytest

from dra_driver.selector.types import DYN, INT, STRING, Type, Unifier


@pytest.mark.parametrize(
    ("previous", "current", "joined"),
    [
        pytest.param(INT, INT, INT, id="alike"),
        pytest.param(DYN, INT, DYN, id="dyn first"),
        pytest.param(INT, DYN, DYN, id="dyn last"),
        pytest.param(INT, STRING, DYN, id="different"),
        pytest.param(Type("list", (DYN,)), Type("list", (INT,)), Type("list", (DYN,)), id="lists"),
    ],
)
def test_a_list_has_the_more_general_type_of_its_elements(
    previous: Type, current: Type, joined: Type
) -> None:
    assert Unifier().join(previous, current) == joined
