"""What a pod asks for, in words."""

from __future__ import annotations

import pytest

from dra_driver.asks.templates import devices_named
from dra_driver.model.claims.claim import Object
from kubectl_gcu.scheduling.asked import asked
from tests.unit.controller.allocator.build import claim, request

SHARED = "shared-gcu.enflame.com"


def configured(parameters: Object, *requests: str, driver: str = "gcu.enflame.com") -> Object:
    found = claim("c", [request(cls="part-gcu.enflame.com")])
    opaque = {"driver": driver, "parameters": {"apiVersion": "v", "kind": "k", **parameters}}
    found["spec"]["devices"]["config"] = [{"requests": list(requests), "opaque": opaque}]
    return found


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        pytest.param(claim("c"), "1 of gcu.enflame.com", id="a card"),
        pytest.param(
            claim("c", [request(cls=SHARED, capacity={"slices": "8"})]),
            f"1 of {SHARED} (slices 8)",
            id="slices",
        ),
        pytest.param(
            claim("c", [request(cls=SHARED, capacity={"gcu.enflame.com/slices": "8"})]),
            f"1 of {SHARED} (slices 8)",
            id="by the full name",
        ),
        pytest.param(
            claim("c", [request("a", count=2), request("b", cls=SHARED)]),
            f"2 of gcu.enflame.com; 1 of {SHARED}",
            id="two requests",
        ),
        pytest.param(
            configured({"memory": "8Gi"}), "1 of part-gcu.enflame.com (memory 8Gi)", id="all"
        ),
        pytest.param(
            configured({"cores": 20}, "gcu"), "1 of part-gcu.enflame.com (cores 20)", id="by name"
        ),
        pytest.param(
            configured({"cores": 20}, "gcu/one"),
            "1 of part-gcu.enflame.com (cores 20)",
            id="of one",
        ),
        pytest.param(configured({"cores": 20}, "x"), "1 of part-gcu.enflame.com", id="another"),
        pytest.param(
            configured({"cores": 20}, driver="gpu.example.com"),
            "1 of part-gcu.enflame.com",
            id="another driver",
        ),
        pytest.param(
            {"spec": {"devices": devices_named("enflame-drs-gcu-2")}},
            "1 of drs-gcu.enflame.com (size 2)",
            id="the limit for an instance",
        ),
        pytest.param({"spec": {}}, "", id="nothing"),
    ],
)
def test_a_claim(wanted: Object, text: str) -> None:
    assert asked([wanted]) == text


def test_alternatives_selectors_and_all() -> None:
    wanted: Object = {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gcu",
                        "firstAvailable": [
                            {"deviceClassName": "a", "selectors": [{"cel": {}}]},
                            {"deviceClassName": "b", "allocationMode": "All"},
                        ],
                    }
                ]
            }
        }
    }
    assert asked([wanted, claim("c")]) == "1 of a (by selectors) or all of b; 1 of gcu.enflame.com"
