"""Which claims are this driver's to serve."""

from __future__ import annotations

import pytest

from controller.allocator.ownership import is_ours
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from tests.unit.controller.allocator.build import (
    CLASSES,
    claim,
    device,
    first_available,
    pool,
    request,
    state,
)


def some_class(*expressions: str) -> Object:
    return {"spec": {"selectors": [{"cel": {"expression": each}} for each in expressions]}}


CLASSES_BY_NAME = CLASSES | {
    "other": some_class('device.driver == "gpu.example.com"'),
    "unguarded": some_class('device.attributes["gpu.example.com"].model == "x"'),
    "custom": some_class('device.driver == "gcu.enflame.com"'),
    "by-attribute": some_class('device.driver.endsWith("enflame.com")'),
    "anything": {"spec": {}},
}
PUBLISHED = pool("a", [device("whole", 0)])


@pytest.mark.parametrize(
    ("cls", "slices", "ours"),
    [
        pytest.param("gcu.enflame.com", [], True, id="a class of ours"),
        pytest.param("custom", [], True, id="names the driver"),
        pytest.param("by-attribute", PUBLISHED, True, id="matches a published device"),
        pytest.param("by-attribute", [], False, id="nothing published to match"),
        pytest.param("other", PUBLISHED, False, id="another driver"),
        pytest.param("unguarded", PUBLISHED, False, id="cannot be evaluated on our devices"),
        pytest.param("anything", PUBLISHED, False, id="a class without selectors"),
        pytest.param("missing", PUBLISHED, False, id="a class that does not exist"),
    ],
)
def test_is_ours(cls: str, slices: list[Object], ours: bool) -> None:
    assert is_ours(claim("c", [request(cls=cls)]), state(slices, classes=CLASSES_BY_NAME)) is ours


def test_the_request_can_name_the_driver() -> None:
    asked = request(cls="by-attribute", selector='device.driver == "gcu.enflame.com"')
    assert is_ours(claim("c", [asked]), state([], classes=CLASSES_BY_NAME))


def test_a_mixed_claim_is_refused_with_the_remedy() -> None:
    mixed = claim("c", [request("gcu"), request("gpu", cls="other")])
    with pytest.raises(Refused) as refused:
        is_ours(mixed, state(PUBLISHED, classes=CLASSES_BY_NAME))
    assert "request gpu" in refused.value.what
    assert "split it" in refused.value.remedy


def test_sub_requests_count() -> None:
    first = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gcu.enflame.com"}]}
    assert is_ours(claim("c", [first]), state([], classes=CLASSES_BY_NAME))


def test_alternatives_of_different_drivers_are_a_mixture() -> None:
    subs = request("ours"), request("theirs", cls="other")
    mixed = claim("c", [first_available("r", *subs)])
    with pytest.raises(Refused, match="request r/theirs"):
        is_ours(mixed, state(PUBLISHED, classes=CLASSES_BY_NAME))
