"""With ``allocator: scheduler``, a claim that asks by GcuConfig needs capacity.requests, too, and
administrative access is for whole cards. No webhook writes claims here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.applied import applied
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.objects import NAMESPACES, TEMPLATES
from tests.unit.kubectl_gcu.checks.claims_for_scheduler import (
    ADMIN_CASES,
    CASES,
    PART_AS_ADMIN,
    claim,
    config,
    spec,
)

pytestmark = pytest.mark.control_plane

SCHEDULER = {"allocator": "scheduler", "schedulerVersion": "1.36.3"}


@pytest.fixture(scope="module", autouse=True)
def policies(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The policies, as long as the tests of this file run."""
    del driver
    folder = tmp_path_factory.mktemp("for-scheduler")
    needed = [
        each
        for name in ("config-amounts", "admin-access")
        for each in rendered(control_plane, folder, f"policy-{name}.yaml", SCHEDULER)
    ]
    with applied(control_plane, *needed):
        wait_until(lambda: refusal(api, claim(config(slices=2))), PATIENCE, "the policy in force")
        yield


def refusal(api: Client, made: Object) -> str:
    resource = RESOURCE_CLAIMS if made["kind"] == RESOURCE_CLAIMS.kind else TEMPLATES
    try:
        api.create(resource, made, dry_run=True)
    except KubeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("made", "is_refused"), CASES)
def test_amounts_of_a_claim(api: Client, made: Object, is_refused: bool) -> None:
    found = refusal(api, made)
    assert bool(found) == is_refused, found
    if is_refused:
        assert "the claim's GcuConfig asks for something else" in found


@pytest.fixture
def administrators(api: Client, namespace: str) -> str:
    """A namespace where administrative access may be requested."""
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    api.patch(NAMESPACES, namespace, label)
    tried = claim(gcu=PART_AS_ADMIN)
    tried["metadata"] |= {"namespace": namespace}
    wait_until(lambda: "for whole cards" in refusal(api, tried), PATIENCE, "the policy in force")
    return namespace


@pytest.mark.parametrize(("made", "is_refused"), ADMIN_CASES)
def test_administrative_access_to_a_part(
    api: Client, administrators: str, made: Object, is_refused: bool
) -> None:
    made = made | {"metadata": made["metadata"] | {"namespace": administrators}}
    found = refusal(api, made)
    assert bool(found) == is_refused, found
    if is_refused:
        assert "adminAccess is for whole cards" in found


def test_of_a_template_administrative_access_alone_is_refused(
    api: Client, administrators: str
) -> None:
    """What its claims ask for is written when they are made."""
    made = claim() | {"kind": TEMPLATES.kind}
    made["metadata"] |= {"namespace": administrators}
    asking = spec(config(slices=2), config(memory="7Gi"))
    assert refusal(api, made | {"spec": {"spec": asking}}) == ""
    found = refusal(api, made | {"spec": {"spec": spec(gcu=PART_AS_ADMIN)}})
    assert "adminAccess is for whole cards" in found
