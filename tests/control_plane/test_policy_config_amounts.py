"""With ``allocator: scheduler``, an amount in GcuConfig needs the same one in capacity.requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_SHARED, DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.objects import TEMPLATES

pytestmark = pytest.mark.control_plane

SCHEDULER = {"allocator": "scheduler", "schedulerVersion": "1.36.3"}


@pytest.fixture(scope="module", autouse=True)
def policy(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The policy, as long as the tests of this file run."""
    del driver
    folder = tmp_path_factory.mktemp("config-amounts")
    needed = rendered(control_plane, folder, "policy-config-amounts.yaml", SCHEDULER)
    control_plane.apply(*needed)
    wait_until(lambda: refusal(api, claim(config(slices=2))), PATIENCE, "the policy in force")
    yield
    for each in needed:
        control_plane.kubectl("delete", each["kind"], each["metadata"]["name"])


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


def refusal(api: Client, made: Object) -> str:
    resource = RESOURCE_CLAIMS if made["kind"] == RESOURCE_CLAIMS.kind else TEMPLATES
    try:
        api.create(resource, made, dry_run=True)
    except KubeError as error:
        return str(error)
    return ""


TWO: Object = {"exactly": shares(2)}
ALTERNATIVES: Object = {"firstAvailable": [shares(2, "two"), shares(1, "one")]}


@pytest.mark.parametrize(
    ("made", "is_refused"),
    [
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
        pytest.param(
            claim(config("gcu/two", slices=2), gcu=ALTERNATIVES), False, id="an alternative"
        ),
        pytest.param(claim(config("gcu", slices=2), gcu=ALTERNATIVES), True, id="all alternatives"),
        pytest.param(claim(config(memory="7Gi")), True, id="memory"),
        pytest.param(claim(config(cores=20), gcu=TWO), True, id="cores beside an amount"),
        pytest.param(claim(config(isolation="fixed-share")), True, id="isolation"),
        pytest.param(
            claim({"opaque": {"driver": "other.example.com", "parameters": {"slices": 2}}}),
            False,
            id="another driver's configuration",
        ),
    ],
)
def test_amounts_of_a_claim(api: Client, made: Object, is_refused: bool) -> None:
    found = refusal(api, made)
    assert bool(found) == is_refused, found
    if is_refused:
        assert "slices or size by capacity.requests" in found


def test_a_template_is_checked_likewise(api: Client) -> None:
    made = claim() | {"kind": TEMPLATES.kind}
    assert refusal(api, made | {"spec": {"spec": spec(config(slices=2), gcu=TWO)}}) == ""
    assert "reads no amount" in refusal(api, made | {"spec": {"spec": spec(config(slices=2))}})
