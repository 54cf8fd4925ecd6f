"""What the chart's policies make of pods with the vendor's limits, on a real API server."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claim import Object
from dra_driver.model.names import (
    CLASS_DRS,
    CLASS_SHARED,
    CLASS_WHOLE,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from dra_driver.model.names import CLASS_LIMIT_PREFIX as OF_CLASS
from tests.control_plane.driver import Driver
from tests.control_plane.legacy import GCUSHARE, asking, wait_until_heeded

pytestmark = pytest.mark.control_plane

CLAIM = "enflame-limits"


def starting(name: str, limits: Mapping[str, str], **more: str) -> Object:
    """An init container with these limits."""
    return {"name": name, "image": "none", "resources": {"limits": dict(limits)}} | more


@pytest.fixture
def tried(api: Client, driver: Driver, namespace: str) -> Client:
    """Our client, once the policies are heeded."""
    wait_until_heeded(api, namespace)
    return api


def shown(made: Object) -> dict[str, str]:
    """Which request each container uses."""
    containers = [*made["spec"]["containers"], *made["spec"].get("initContainers", ())]
    return {
        each["name"]: claim["request"]
        for each in containers
        for claim in each["resources"].get("claims", ())
        if claim["name"] == CLAIM
    }


def template_of(made: Object) -> str | None:
    return next(
        (
            str(each["resourceClaimTemplateName"])
            for each in made["spec"].get("resourceClaims", ())
            if each["name"] == CLAIM
        ),
        None,
    )


class Case(NamedTuple):
    limits: list[dict[str, str]]
    template: str | None
    uses: dict[str, str]
    spec: Mapping[str, Any] = MappingProxyType({})


ONE = {"c0": "gcu-0"}
TRANSLATED = {
    "a whole card": Case([{RESOURCE_WHOLE: "1"}], "enflame-gcu-1", ONE),
    "whole cards": Case([{RESOURCE_WHOLE: "8"}], "enflame-gcu-8", ONE),
    "slices": Case([{RESOURCE_SHARED: "2"}], "enflame-shared-gcu-2", ONE),
    "an instance": Case([{RESOURCE_DRS: "3"}], "enflame-drs-gcu-3", ONE),
    "another spelling": Case([{RESOURCE_SHARED: "2000m"}], "enflame-shared-gcu-2", ONE),
    "beside other limits": Case(
        [{RESOURCE_DRS: "1", "memory": "1Gi", "cpu": "1"}], "enflame-drs-gcu-1", ONE
    ),
    "several containers": Case(
        [{RESOURCE_SHARED: "2"}, {"cpu": "1"}, {RESOURCE_SHARED: "1"}],
        "enflame-shared-gcu-2-1",
        {"c0": "gcu-0", "c2": "gcu-1"},
    ),
    "an init container hands on": Case(
        [{RESOURCE_DRS: "1"}, {RESOURCE_DRS: "3"}],
        "enflame-drs-gcu-1-3",
        {"c0": "gcu-0", "c1": "gcu-1", "before": "gcu-1"},
        {"initContainers": [starting("before", {RESOURCE_DRS: "3"})]},
    ),
    "an init container with more": Case(
        [{RESOURCE_WHOLE: "1"}],
        "enflame-gcu-1-2",
        {"c0": "gcu-0", "before": "gcu-1"},
        {"initContainers": [starting("before", {RESOURCE_WHOLE: "2"})]},
    ),
    "a sidecar keeps its own": Case(
        [{RESOURCE_SHARED: "1"}],
        "enflame-shared-gcu-1-1",
        {"c0": "gcu-0", "beside": "gcu-1"},
        {"initContainers": [starting("beside", {RESOURCE_SHARED: "1"}, restartPolicy="Always")]},
    ),
    "init containers alone, one after the other": Case(
        [{"cpu": "1"}],
        "enflame-gcu-1",
        {"first": "gcu-0", "then": "gcu-0"},
        {"initContainers": [starting(name, {RESOURCE_WHOLE: "1"}) for name in ("first", "then")]},
    ),
    "a sidecar runs on while an init container starts": Case(
        [{RESOURCE_DRS: "1"}],
        "enflame-drs-gcu-1-3-3",
        {"c0": "gcu-0", "beside": "gcu-1", "then": "gcu-2"},
        {
            "initContainers": [
                starting("beside", {RESOURCE_DRS: "3"}, restartPolicy="Always"),
                starting("then", {RESOURCE_DRS: "3"}),
            ]
        },
    ),
    "an init container between two sidecars": Case(
        [{"cpu": "1"}],
        "enflame-shared-gcu-2-2",
        {"before": "gcu-0", "between": "gcu-1", "after": "gcu-1"},
        {
            "initContainers": [
                starting("before", {RESOURCE_SHARED: "2"}, restartPolicy="Always"),
                starting("between", {RESOURCE_SHARED: "2"}),
                starting("after", {RESOURCE_SHARED: "2"}, restartPolicy="Always"),
            ]
        },
    ),
    "cards of the class": Case([{OF_CLASS + CLASS_WHOLE: "2"}], "enflame-gcu-2", ONE),
    "devices of the class for slices": Case(
        [{OF_CLASS + CLASS_SHARED: "2"}, {OF_CLASS + CLASS_SHARED: "1"}],
        "enflame-shared-gcu-devices-2-1",
        {"c0": "gcu-0", "c1": "gcu-1"},
    ),
    "devices of the class for instances": Case(
        [{OF_CLASS + CLASS_DRS: "1"}], "enflame-drs-gcu-devices-1", ONE
    ),
    "no limits of ours": Case([{"cpu": "1"}], None, {}),
}


@pytest.mark.parametrize("case", TRANSLATED.values(), ids=TRANSLATED)
def test_limits_become_a_claim(tried: Client, namespace: str, case: Case) -> None:
    made = tried.create(PODS, asking(namespace, *case.limits, **case.spec), dry_run=True)
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


REFUSED = {
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
}


@pytest.mark.parametrize(("limits", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_in_words(
    tried: Client, namespace: str, limits: list[dict[str, str]], words: str
) -> None:
    with pytest.raises(KubeError, match=words):
        tried.create(PODS, asking(namespace, *limits), dry_run=True)


def test_a_claim_of_the_name_that_is_ours_is_refused(tried: Client, namespace: str) -> None:
    theirs = {"name": CLAIM, "resourceClaimName": "any"}
    with pytest.raises(KubeError, match="it has one of that name already"):
        tried.create(
            PODS, asking(namespace, {RESOURCE_SHARED: "1"}, resourceClaims=[theirs]), dry_run=True
        )


SCHEDULERS = {
    "the vendor's, with limits": ({RESOURCE_SHARED: "1"}, GCUSHARE, "default-scheduler"),
    "the vendor's, without": ({}, GCUSHARE, "default-scheduler"),
    "somebody else's": ({RESOURCE_SHARED: "1"}, "volcano", "volcano"),
}


@pytest.mark.parametrize(("limits", "named", "found"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_nobody_waits_for_the_vendors_scheduler(
    tried: Client, namespace: str, limits: dict[str, str], named: str, found: str
) -> None:
    made = tried.create(PODS, asking(namespace, limits, schedulerName=named), dry_run=True)
    assert made["spec"]["schedulerName"] == found


LABEL = "enflame.com/gcushare"
ZONE = {"zone": "a"}
SELECTORS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "the vendor's label": ({RESOURCE_SHARED: "1"}, {LABEL: "true"}, {}),
    "beside another": ({RESOURCE_SHARED: "1"}, {LABEL: "true"} | ZONE, ZONE),
    "nodes without it": ({RESOURCE_SHARED: "1"}, {LABEL: "false"}, {LABEL: "false"}),
    "another alone": ({RESOURCE_SHARED: "1"}, ZONE, ZONE),
    "without limits": ({}, {LABEL: "true"}, {LABEL: "true"}),
}


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
