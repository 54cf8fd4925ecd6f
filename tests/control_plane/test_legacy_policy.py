"""What the chart's policies make of pods with the vendor's limits, on a real API server."""

from __future__ import annotations

import random

import pytest

from dra_driver.asks.claims import CLAIM
from dra_driver.asks.limits import limit_names
from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.names import (
    RESOURCE_CORE,
    RESOURCE_MEMORY,
    RESOURCE_SHARED,
)
from tests.control_plane.driver import Driver
from tests.control_plane.legacy import GCUSHARE, asking, wait_until_heeded
from tests.seed import SEED
from tests.unit.asks.cases import (
    REFUSED,
    SCHEDULERS,
    SELECTORS,
    TRANSLATED,
    Case,
    before,
    claimed,
    random_pod,
    shown,
    template_of,
)

pytestmark = pytest.mark.control_plane


@pytest.fixture
def tried(api: Client, driver: Driver, namespace: str) -> Client:
    """Our client, once the policies are heeded."""
    wait_until_heeded(api, namespace)
    return api


@pytest.mark.parametrize("case", TRANSLATED.values(), ids=TRANSLATED)
def test_limits_become_a_claim(tried: Client, namespace: str, case: Case) -> None:
    made = tried.create(PODS, case.pod(namespace), dry_run=True)
    assert (template_of(made), shown(made)) == (case.template, case.uses)
    assert not limit_names(made)
    cpu = [each.get("cpu") for each in case.limits]
    assert [
        each["resources"].get("limits", {}).get("cpu") for each in made["spec"]["containers"]
    ] == cpu


def test_claims_of_the_pod_stay(tried: Client, namespace: str) -> None:
    """Those of other drivers, say; a container may use both."""
    own = {"name": "net", "resourceClaimName": "nic"}
    asked = asking(namespace, {RESOURCE_SHARED: "1"}, resourceClaims=[own])
    asked["spec"]["containers"][0]["resources"]["claims"] = [{"name": "net"}]
    made = tried.create(PODS, asked, dry_run=True)
    assert made["spec"]["resourceClaims"] == [
        own,
        {"name": CLAIM, "resourceClaimTemplateName": "enflame-shared-gcu-1"},
    ]
    assert made["spec"]["containers"][0]["resources"]["claims"] == [
        {"name": "net"},
        {"name": CLAIM, "request": "gcu-0"},
    ]


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_in_words(tried: Client, namespace: str, case: Case) -> None:
    with pytest.raises(KubeError, match=case.words):
        tried.create(PODS, case.pod(namespace), dry_run=True)


def test_random_pods_get_what_python_gives_them(tried: Client, namespace: str) -> None:
    draw = random.Random(SEED)
    for _ in range(100):
        pod = random_pod(draw, namespace)
        made = tried.create(PODS, pod, dry_run=True)
        assert (template_of(made), shown(made)) == claimed(pod), pod["spec"]


def test_the_largest_pod_is_within_the_servers_budget(tried: Client, namespace: str) -> None:
    """By init containers none of which covers another one, each compared with each."""
    limits = [{RESOURCE_CORE: str(i), RESOURCE_MEMORY: str(99 - i)} for i in range(1, 33)]
    pod = asking(namespace, {}, **before(*limits))
    made = tried.create(PODS, pod, dry_run=True)
    assert (template_of(made), shown(made)) == claimed(pod)


@pytest.mark.parametrize(("limits", "named", "found"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_nobody_waits_for_the_vendors_scheduler(
    tried: Client, namespace: str, limits: dict[str, str], named: str, found: str
) -> None:
    made = tried.create(PODS, asking(namespace, limits, schedulerName=named), dry_run=True)
    assert made["spec"]["schedulerName"] == found


@pytest.mark.parametrize(("limits", "asked", "left"), SELECTORS.values(), ids=SELECTORS)
def test_nobody_waits_for_the_vendors_label(
    tried: Client,
    namespace: str,
    limits: dict[str, str],
    asked: dict[str, str],
    left: dict[str, str],
) -> None:
    pod = asking(namespace, limits, schedulerName=GCUSHARE, nodeSelector=asked)
    made = tried.create(PODS, pod, dry_run=True)
    assert made["spec"].get("nodeSelector", {}) == left


def test_a_dry_run_makes_nothing(tried: Client, namespace: str) -> None:
    tried.create(PODS, asking(namespace, {RESOURCE_SHARED: "5"}), dry_run=True)
    with pytest.raises(NotFound):
        tried.get(RESOURCE_CLAIM_TEMPLATES, "enflame-shared-gcu-5", namespace=namespace)
    assert tried.list(RESOURCE_CLAIMS, namespace=namespace).items == ()
    assert tried.list(PODS, namespace=namespace).items == ()
