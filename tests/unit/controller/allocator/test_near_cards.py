"""Cards of one claim or pod are near one another."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim, pool, request
from tests.unit.controller.allocator.decide import cards, decide, names


def of_models(*models: str) -> list[Object]:
    """Cards of these models, two on each switch."""
    found = cards(len(models))
    for each, model in zip(found, models, strict=True):
        each["attributes"]["model"] = {"string": model}
    return found


SAME_MODEL = {"matchAttribute": "gcu.enflame.com/model"}
NEAR_ONES = {
    "of one model the nearest": (
        of_models("S60", "T20", "S60", "T20", "T20", "S60", "S60", "S60"),
        [claim("c", [request(count=2)], constraints=[SAME_MODEL])],
        (6, 7),
    ),
    "of one model where a nearer set is of two": (
        of_models("S60", "T20", "T20", "S60", "S60", "T20", "S60", "S60"),
        [claim("c", [request(count=3)], constraints=[SAME_MODEL])],
        (4, 6, 7),
    ),
    "two requests of a claim": (
        cards(3),
        [claim("c", [request("one"), request("two")])],
        (0, 1),
    ),
    "two claims of a pod": (
        cards(3),
        [claim("c", [request()]), claim("d", [request()])],
        (0, 1),
    ),
    "more cards than match one selector": (
        of_models("S60", "T20", "S60"),
        [
            claim(
                "c",
                [
                    request("one", selector='device.attributes["gcu.enflame.com"].model == "T20"'),
                    request("two"),
                ],
            )
        ],
        (1, 0),
    ),
}


@pytest.mark.parametrize(("devices", "claims", "buses"), NEAR_ONES.values(), ids=NEAR_ONES)
def test_near_each_other(
    devices: list[Object], claims: list[Object], buses: tuple[int, ...]
) -> None:
    expected = [name.removesuffix("-00-0") for name in names("whole", *buses)]
    assert decide(pool("a", devices), [], *claims) == ("a", expected)
