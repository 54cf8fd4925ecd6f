"""Which claims are refused before anything is searched."""

from __future__ import annotations

import pytest

from controller.allocator.request import parse_claim
from dra_driver.model.claim import Object
from dra_driver.model.errors import Refused
from tests.unit.controller.allocator.build import claim, request, state

REFUSED = {
    "firstAvailable": ({"name": "r", "firstAvailable": [{"name": "s"}]}, "firstAvailable"),
    "All": (request(allocationMode="All"), "allocationMode All"),
    "adminAccess": (request(adminAccess=True), "adminAccess"),
    "no such class": (
        request(cls="none.example.com"),
        "DeviceClass none.example.com does not exist",
    ),
    "too many": (request(count=33), "asks for 33 devices, and a claim can hold 32"),
}


@pytest.mark.parametrize(("entry", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_by_name(entry: Object, words: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_claim(claim("c", [entry]), state([]).classes)
    assert words in str(refused.value)
    assert "default/c" in str(refused.value)


def test_distinct_attribute_is_refused_by_name() -> None:
    wanted = claim("c", constraints=[{"distinctAttribute": "gcu.enflame.com/card"}])
    with pytest.raises(Refused, match="distinctAttribute is not supported yet"):
        parse_claim(wanted, state([]).classes)
