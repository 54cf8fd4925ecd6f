"""Requests are refused that would let kube-scheduler allocate beside the controller, or give whole
cards by the class for administrators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_ADMIN, CLASS_WHOLE, TAINT_ALLOCATED_BY, TAINT_UNHEALTHY
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.objects import TEMPLATES
from tests.unit.kubectl_gcu.checks.claims_for_scheduler import ADMIN_CLASS_CASES

pytestmark = pytest.mark.control_plane

OTHER_CLASS = "gpu.example.com"
BY_NAME = {"key": TAINT_ALLOCATED_BY, "operator": "Exists"}
BY_VALUE = {"key": TAINT_ALLOCATED_BY, "operator": "Equal", "value": "controller"}
KEYLESS = {"operator": "Exists"}
UNHEALTHY = {"key": TAINT_UNHEALTHY, "operator": "Exists"}


def wanted(*tolerations: Object, device_class: str = CLASS_WHOLE, **more: Any) -> Object:
    """What a request wants: the content of `exactly`, or with a name an alternative."""
    listed = {"tolerations": list(tolerations)} if tolerations else {}
    return {"deviceClassName": device_class, **listed, **more}


def exactly(*tolerations: Object, name: str = "gcu", device_class: str = CLASS_WHOLE) -> Object:
    return {"name": name, "exactly": wanted(*tolerations, device_class=device_class)}


def first_available(*alternatives: Object, name: str = "gcu") -> Object:
    return {"name": name, "firstAvailable": list(alternatives)}


def claim(namespace: str, *requests: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "tried", "namespace": namespace},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(namespace: str, *requests: Object) -> Object:
    made = claim(namespace, *requests)
    return made | {"kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


REFUSED = {
    "by name": [exactly(BY_NAME)],
    "by name and value": [exactly(BY_VALUE)],
    "by name, for another effect": [exactly({**BY_NAME, "effect": "NoExecute"})],
    "without a key": [exactly(KEYLESS)],
    "without a key, for the taint's effect": [exactly({**KEYLESS, "effect": "NoSchedule"})],
    "among other tolerations": [exactly(UNHEALTHY, BY_NAME)],
    "in a later request": [exactly(name="first"), exactly(BY_NAME)],
    "in an alternative": [
        first_available(wanted(name="a", device_class=OTHER_CLASS), wanted(BY_NAME, name="b"))
    ],
    "in an alternative, without a key": [first_available(wanted(KEYLESS, name="a"))],
}
TAKEN = {
    "no toleration": [exactly()],
    "another key": [exactly(UNHEALTHY)],
    "without a key, for another effect": [exactly({**KEYLESS, "effect": "NoExecute"})],
    "another driver's class": [exactly(KEYLESS, device_class=OTHER_CLASS)],
    "another driver's class beside ours": [
        exactly(KEYLESS, name="theirs", device_class=OTHER_CLASS),
        exactly(),
    ],
    "alternatives": [first_available(wanted(UNHEALTHY, name="a"), wanted(name="b"))],
    "an alternative of another driver's class": [
        first_available(wanted(name="a"), wanted(KEYLESS, name="b", device_class=OTHER_CLASS))
    ],
}
KINDS = {"claim": (RESOURCE_CLAIMS, claim), "template": (TEMPLATES, template)}


def create(api: Client, resource: Resource, body: Object) -> None:
    api.create(resource, body, dry_run=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("requests", REFUSED.values(), ids=REFUSED)
def test_a_request_that_tolerates_the_taint_is_refused(
    api: Client, driver: Driver, kind: str, requests: list[Object]
) -> None:
    resource, make = KINDS[kind]
    with pytest.raises(KubeError) as told:
        create(api, resource, make("default", *requests))
    message = str(told.value)
    assert "request gcu: a request for a GCU must not tolerate the taint" in message
    assert f"such as {TAINT_UNHEALTHY}" in message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("requests", TAKEN.values(), ids=TAKEN)
def test_other_requests_are_taken(
    api: Client, driver: Driver, kind: str, requests: list[Object]
) -> None:
    resource, make = KINDS[kind]
    create(api, resource, make("default", *requests))


@pytest.mark.parametrize("made", ADMIN_CLASS_CASES)
def test_the_administrators_class_without_their_access_is_refused(
    api: Client, driver: Driver, made: Object
) -> None:
    with pytest.raises(KubeError, match=f"DeviceClass {CLASS_ADMIN} is for adminAccess: request"):
        create(api, RESOURCE_CLAIMS, made)


def test_a_claim_without_requests_is_none_of_its_business(api: Client, driver: Driver) -> None:
    create(api, RESOURCE_CLAIMS, claim("default") | {"spec": {}})


OWN_CLASS = "inference.example.com"


@pytest.fixture(scope="module")
def named(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The policy of a release that names an administrator's class, beside the installed one."""
    folder = tmp_path_factory.mktemp("own-classes")
    policy, binding = rendered(
        control_plane, folder, "policy-tolerations.yaml", {"ownDeviceClasses": [OWN_CLASS]}
    )
    name = "own-classes.example.com"
    policy["metadata"] = {"name": name}
    binding |= {"metadata": {"name": name}, "spec": binding["spec"] | {"policyName": name}}
    control_plane.apply(policy, binding)
    tried = claim("default", exactly(BY_NAME, device_class=OWN_CLASS))

    def is_heeded() -> bool:
        try:
            create(api, RESOURCE_CLAIMS, tried)
        except KubeError as error:
            return name in str(error)
        return False

    wait_until(is_heeded, PATIENCE, "the policy to be heeded")
    yield
    for each in (binding, policy):
        control_plane.kubectl("delete", each["kind"], name)


OF_OWN_CLASS = {
    "by name": exactly(BY_NAME, device_class=OWN_CLASS),
    "without a key": exactly(KEYLESS, device_class=OWN_CLASS),
    "in an alternative": first_available(wanted(KEYLESS, name="a", device_class=OWN_CLASS)),
}


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("request_", OF_OWN_CLASS.values(), ids=OF_OWN_CLASS)
def test_so_is_one_of_a_class_that_the_administrator_names(
    api: Client, kind: str, request_: Object
) -> None:
    resource, make = KINDS[kind]
    with pytest.raises(KubeError, match="request gcu: a request for a GCU must not tolerate"):
        create(api, resource, make("default", request_))
    create(api, resource, make("default", exactly(UNHEALTHY, device_class=OWN_CLASS)))
    create(api, resource, make("default", exactly(KEYLESS, device_class=OTHER_CLASS)))
