"""What the chart's policies make of pods with the vendor's limits, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.names import CLASS_LIMIT_PREFIX as OF_CLASS
from dra_driver.model.names import (
    CLASS_SHARED,
    RESOURCE_CORE,
    RESOURCE_DRS,
    RESOURCE_MEMORY,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane import measured_cases
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.legacy import GCUSHARE, asking, wait_until_heeded
from tests.control_plane.legacy_cases import (
    CLAIM,
    SCHEDULERS,
    SELECTORS,
    TRANSLATED,
    Case,
    shown,
    template_of,
)

pytestmark = pytest.mark.control_plane

SCHEDULER = {"allocator": "scheduler", "schedulerVersion": "1.36.3"}


@pytest.fixture
def tried(api: Client, driver: Driver, namespace: str) -> Client:
    """Our client, once the policies are heeded."""
    wait_until_heeded(api, namespace)
    return api


@pytest.mark.parametrize("case", TRANSLATED.values(), ids=TRANSLATED)
def test_limits_become_a_claim(tried: Client, namespace: str, case: Case) -> None:
    made = tried.create(PODS, case.pod(namespace), dry_run=True)
    assert (template_of(made), shown(made)) == (case.template, case.uses)
    for each in [*made["spec"]["containers"], *made["spec"].get("initContainers", ())]:
        for kind in ("limits", "requests"):
            assert not any("enflame" in name for name in each["resources"].get(kind, ()))
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


REFUSED = measured_cases.REFUSED | {
    "two kinds in a pod": (
        [{RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "1"}],
        "asks for enflame.com/shared-gcu and enflame.com/drs-gcu: a pod asks for one kind of GCU",
    ),
    "two kinds in a container": (
        [{RESOURCE_WHOLE: "1", RESOURCE_SHARED: "1"}],
        "asks for enflame.com/gcu and enflame.com/shared-gcu",
    ),
    "zero": (
        [{RESOURCE_WHOLE: "1"}, {RESOURCE_WHOLE: "0"}],
        "container c1: the limit enflame.com/gcu is 1 or more",
    ),
    "less than zero": ([{RESOURCE_SHARED: "-1"}], "must be greater than or equal to 0"),
    "a part": ([{RESOURCE_SHARED: "500m"}], "must be an integer"),
    "more than a claim can hold": ([{RESOURCE_WHOLE: "33"}], "32 whole cards at most"),
    "more devices than a claim can hold": (
        [{OF_CLASS + CLASS_SHARED: "33"}],
        "32 devices of a DeviceClass",
    ),
    "the vendor's limit beside that of a class": (
        [{RESOURCE_SHARED: "1"}, {OF_CLASS + CLASS_SHARED: "1"}],
        "asks for enflame.com/shared-gcu and deviceclass.resource.kubernetes.io/shared-gcu",
    ),
    "an absurd amount": ([{RESOURCE_SHARED: "1000"}], "each limit 999 at most"),
    "a template with too long a name": (
        [{RESOURCE_CORE: "40", RESOURCE_MEMORY: "20480"}] * 24,
        "some 20 by memory and compute",
    ),
}


@pytest.mark.parametrize(("limits", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_in_words(
    tried: Client, namespace: str, limits: list[dict[str, str]], words: str
) -> None:
    with pytest.raises(KubeError, match=words):
        tried.create(PODS, asking(namespace, *limits), dry_run=True)


@pytest.mark.parametrize(("isolation", "words"), measured_cases.ISOLATIONS.items())
def test_another_isolation_is_refused(
    tried: Client, namespace: str, isolation: str, words: str
) -> None:
    asked = asking(namespace, {RESOURCE_CORE: "10"})
    measured_cases.isolate(asked, isolation)
    with pytest.raises(KubeError, match=words):
        tried.create(PODS, asked, dry_run=True)


def test_a_claim_of_the_name_that_is_ours_is_refused(tried: Client, namespace: str) -> None:
    theirs = {"name": CLAIM, "resourceClaimName": "any"}
    with pytest.raises(KubeError, match="it has one of that name already"):
        tried.create(
            PODS, asking(namespace, {RESOURCE_SHARED: "1"}, resourceClaims=[theirs]), dry_run=True
        )


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


@pytest.fixture
def by_scheduler(control_plane: Cluster, tried: Client, tmp_path: Path) -> Iterator[Client]:
    """The policies as with ``allocator: scheduler``; afterwards the release's again."""
    values = {"legacyResources": {"enabled": True}, **SCHEDULER}
    changed = rendered(control_plane, tmp_path, "policy-legacy-resources.yaml", values)
    names = [(each["kind"], each["metadata"]["name"]) for each in changed]
    before = [control_plane.get(*name) for name in names]
    for each in before:
        for field in ("resourceVersion", "uid"):
            del each["metadata"][field]
    control_plane.apply(*changed)
    yield tried
    control_plane.apply(*before)


def test_kube_scheduler_is_given_no_memory_and_compute(
    by_scheduler: Client, namespace: str
) -> None:
    def refusal() -> str:
        try:
            by_scheduler.create(PODS, asking(namespace, {RESOURCE_CORE: "10"}), dry_run=True)
        except KubeError as error:
            return str(error)
        return ""

    words = "kube-scheduler allocates GCUs in this cluster, and cannot translate"
    wait_until(lambda: words in refusal(), PATIENCE, "the refusal", seen=refusal)
    made = by_scheduler.create(PODS, asking(namespace, {RESOURCE_SHARED: "2"}), dry_run=True)
    assert template_of(made) == "enflame-shared-gcu-2"
