"""Which capacities a request asks for, by the names that devices have them under."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.amounts import by_short_name, requested
from dra_driver.model.errors import Refused


def form(**amounts: object) -> dict[str, object]:
    return {"deviceClassName": "x", "capacity": {"requests": amounts}}


ASKED = {
    "nothing": ({"deviceClassName": "x"}, {}),
    "no capacity": ({"capacity": None}, {}),
    "the short name": (form(slices="2"), {"slices": "2"}),
    "the full name": (form(**{"gcu.enflame.com/slices": "2"}), {"slices": "2"}),
    "a number": (form(size=3), {"size": "3"}),
    "a name that nobody knows": (form(bandwidth="1"), {"bandwidth": "1"}),
}


@pytest.mark.parametrize(("asked", "amounts"), ASKED.values(), ids=ASKED)
def test_requested(asked: dict[str, object], amounts: dict[str, str]) -> None:
    assert requested(asked, "claim c, request r") == amounts


REFUSED = {
    "two amounts": (
        form(**{"slices": "2", "gcu.enflame.com/slices": "3"}),
        "it asks for slices 2 and for gcu.enflame.com/slices 3, which are one capacity; leave one",
    ),
    "one amount by both names": (
        form(**{"slices": "2", "gcu.enflame.com/slices": "2"}),
        "it asks for slices 2 and for gcu.enflame.com/slices 2, which are one capacity; leave one",
    ),
    "another domain": (
        form(**{"gpu.example.com/slices": "2"}),
        "no device of gcu.enflame.com has the capacity gpu.example.com/slices; ask for slices or",
    ),
    "nothing behind the domain": (
        form(**{"gcu.enflame.com/": "2"}),
        "the capacity gcu.enflame.com/;",
    ),
    "two slashes": (form(**{"a/b/c": "2"}), "has the capacity a/b/c"),
    "two slashes after the domain": (
        form(**{"gcu.enflame.com/a/b": "2"}),
        "has the capacity gcu.enflame.com/a/b",
    ),
}


@pytest.mark.parametrize(("asked", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(Refused) as refused:
        requested(asked, "claim c, request r")
    assert str(refused.value).startswith("claim c, request r: ")
    assert words in str(refused.value)


def test_amounts_that_were_granted() -> None:
    short = {"slices": "2"}
    assert by_short_name(short) is short  # tens of thousands of claims have them so
    assert by_short_name({"gcu.enflame.com/slices": "2", "a/b": "1"}) == {"slices": "2", "a/b": "1"}
