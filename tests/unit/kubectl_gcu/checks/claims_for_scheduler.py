"""Claims with a GcuConfig or with adminAccess, and whether the chart's policies refuse them while
kube-scheduler allocates: on a real API server, and by `kubectl_gcu.checks.scheduler_policies`."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_ADMIN, CLASS_PART, CLASS_SHARED, CLASS_WHOLE, DRIVER


def config(*requests: str, **amounts: Any) -> Object:
    parameters = {"apiVersion": f"{DRIVER}/v1alpha1", "kind": "GcuConfig", **amounts}
    return {
        "opaque": {"driver": DRIVER, "parameters": parameters},
        **({"requests": list(requests)} if requests else {}),
    }


def shares(amount: int | str | None, name: str | None = None, *, full: int = 0) -> Object:
    """A form that asks for slices; for `full` by the full name of the capacity."""
    found: Object = {"deviceClassName": CLASS_SHARED}
    if name is not None:
        found["name"] = name
    if amount is not None:
        found["capacity"] = {"requests": {"slices": str(amount)}}
    if full:
        found.setdefault("capacity", {"requests": {}})["requests"][f"{DRIVER}/slices"] = str(full)
    return found


def spec(*configs: Object, **requests: Object) -> Object:
    asked = [{"name": name, **form} for name, form in requests.items()] or [
        {"name": "gcu", "exactly": shares(None)}
    ]
    return {"devices": {"requests": asked, **({"config": list(configs)} if configs else {})}}


def claim(*configs: Object, **requests: Object) -> Object:
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": spec(*configs, **requests),
    }


TWO: Object = {"exactly": shares(2)}
ALTERNATIVES: Object = {"firstAvailable": [shares(2, "two"), shares(1, "one")]}


CASES: Final = [
    pytest.param(claim(), False, id="no configuration"),
    pytest.param(claim(config(packing={"cards": "spread"})), False, id="no amount"),
    pytest.param(claim(config(slices=2)), True, id="an amount in the configuration alone"),
    pytest.param(claim(config(slices=2), gcu=TWO), False, id="the same amounts"),
    pytest.param(claim(config("gcu", slices=2), gcu=TWO), False, id="by the request's name"),
    pytest.param(claim(config(slices=3), gcu=TWO), True, id="different amounts"),
    pytest.param(claim(config(size=2), gcu=TWO), True, id="the amount of another mode"),
    pytest.param(
        claim(config(slices=2), gcu={"exactly": shares(None, full=2)}),
        False,
        id="by the full name",
    ),
    pytest.param(
        claim(config(slices=2), gcu={"exactly": shares(2, full=2)}), False, id="by both names"
    ),
    pytest.param(
        claim(config(slices=2), gcu={"exactly": shares(None, full=3)}),
        True,
        id="another amount by the full name",
    ),
    pytest.param(
        claim(config(slices=2), gcu={"exactly": shares(2, full=3)}),
        True,
        id="another amount by one of both names",
    ),
    pytest.param(
        claim(config("gcu", slices=2), gcu=TWO, other={"exactly": shares(1)}),
        False,
        id="another request",
    ),
    pytest.param(claim(config("gcu/two", slices=2), gcu=ALTERNATIVES), False, id="an alternative"),
    pytest.param(claim(config("gcu", slices=2), gcu=ALTERNATIVES), True, id="all alternatives"),
    pytest.param(claim(config(memory="7Gi")), True, id="memory"),
    pytest.param(claim(config(cores=20), gcu=TWO), False, id="cores beside an amount"),
    pytest.param(
        claim(config(memory="7Gi", cores=20), gcu={"exactly": shares(None, full=2)}),
        False,
        id="memory and cores beside an amount by the full name",
    ),
    pytest.param(claim(config(isolation="fixed-share")), True, id="isolation"),
    pytest.param(
        claim(config("gcu", memory="7Gi"), gcu=ALTERNATIVES), False, id="memory of alternatives"
    ),
    pytest.param(
        claim(
            config("gcu", memory="7Gi"),
            gcu={"firstAvailable": [shares(2, "two"), shares(None, "any")]},
        ),
        True,
        id="an alternative without an amount",
    ),
    pytest.param(
        claim(config("gcu", memory="7Gi"), gcu=TWO, other={"exactly": shares(None)}),
        False,
        id="memory of another request",
    ),
    pytest.param(
        claim({"opaque": {"driver": "other.example.com", "parameters": {"slices": 2}}}),
        False,
        id="another driver's configuration",
    ),
]

PART_AS_ADMIN: Object = {"exactly": shares(2) | {"adminAccess": True}}
ADMIN_CASES: Final = [
    pytest.param(claim(gcu=PART_AS_ADMIN), True, id="of slices"),
    pytest.param(claim(gcu=TWO, other=PART_AS_ADMIN), True, id="of a second request"),
    pytest.param(
        claim(gcu={"exactly": {"deviceClassName": CLASS_PART, "adminAccess": True}}),
        True,
        id="of any part",
    ),
    pytest.param(
        claim(gcu={"exactly": {"deviceClassName": CLASS_WHOLE, "adminAccess": True}}),
        False,
        id="of a card",
    ),
    pytest.param(
        claim(gcu={"exactly": shares(2) | {"adminAccess": False}}), False, id="not asked for"
    ),
    pytest.param(claim(gcu=ALTERNATIVES), False, id="alternatives"),
    pytest.param(
        claim(gcu={"exactly": {"deviceClassName": CLASS_ADMIN, "adminAccess": True}}),
        False,
        id="by the administrators' class",
    ),
]

ADMIN_CLASS_CASES: Final = [
    pytest.param(claim(gcu={"exactly": {"deviceClassName": CLASS_ADMIN}}), id="a request"),
    pytest.param(
        claim(gcu={"firstAvailable": [{"name": "one", "deviceClassName": CLASS_ADMIN}]}),
        id="an alternative",
    ),
]
