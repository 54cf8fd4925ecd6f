"""What becomes of a pod with the vendor's limits: the same as by the chart's policy."""

from __future__ import annotations

import pytest

from controller.webhook.limits import LimitRules, translate_limits
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ANNOTATION_ISOLATION,
    CLASS_SHARED,
    RESOURCE_CORE,
    RESOURCE_DRS,
    RESOURCE_MEMORY,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from dra_driver.model.names import CLASS_LIMIT_PREFIX as OF_CLASS
from tests.control_plane.legacy import GCUSHARE, asking
from tests.control_plane.legacy_cases import (
    CLAIM,
    SCHEDULERS,
    SELECTORS,
    TRANSLATED,
    Case,
    shown,
    template_of,
)
from tests.unit.controller.webhook.patching import patched

RULES = LimitRules(frozenset({GCUSHARE}), "default-scheduler", drop_node_selector=True)


def translated(pod: Object, rules: LimitRules = RULES) -> Object:
    """The pod with its defaults, after the webhook; a second call changes nothing."""
    for each in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]:
        resources = each.setdefault("resources", {})
        if "limits" in resources:
            resources["requests"] = dict(resources["limits"])
    made = patched(pod, translate_limits(pod, rules))
    assert translate_limits(made, rules) == []
    return made


@pytest.mark.parametrize("case", TRANSLATED.values(), ids=TRANSLATED)
def test_limits_become_a_claim(case: Case) -> None:
    made = translated(case.pod("team"))
    assert (template_of(made), shown(made)) == (case.template, case.uses)
    containers = [*made["spec"]["containers"], *made["spec"].get("initContainers", ())]
    for each in containers:
        for kind in ("limits", "requests"):
            assert not any("enflame" in name for name in each["resources"].get(kind, ()))
    cpu = [each.get("cpu") for each in case.limits]
    assert [each["resources"]["limits"].get("cpu") for each in made["spec"]["containers"]] == cpu


UNTRANSLATED = {
    "two kinds in a pod": [{RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "1"}],
    "two kinds in a container": [{RESOURCE_WHOLE: "1", RESOURCE_SHARED: "1"}],
    "zero": [{RESOURCE_WHOLE: "1"}, {RESOURCE_WHOLE: "0"}],
    "a part": [{RESOURCE_SHARED: "500m"}],
    "no quantity": [{RESOURCE_SHARED: "few"}],
    "more than a claim can hold": [{RESOURCE_WHOLE: "33"}],
    "more devices than a claim can hold": [{OF_CLASS + CLASS_SHARED: "33"}],
    "more containers than a claim can hold": [{RESOURCE_SHARED: "1"}] * 33,
    "an absurd amount": [{RESOURCE_SHARED: "1000"}],
    "all compute of a card": [{RESOURCE_CORE: "100"}],
    "memory in bytes": [{RESOURCE_MEMORY: "20Gi"}],
    "compute of one and nothing of the other": [{RESOURCE_CORE: "10", RESOURCE_MEMORY: "0"}],
    "a template with too long a name": [{RESOURCE_CORE: "40", RESOURCE_MEMORY: "20480"}] * 24,
    "compute beside slices": [{RESOURCE_CORE: "10"}, {RESOURCE_SHARED: "1"}],
}


@pytest.mark.parametrize("limits", UNTRANSLATED.values(), ids=UNTRANSLATED)
def test_the_validating_policy_sees_what_cannot_be_translated(limits: list[dict[str, str]]) -> None:
    pod = asking("team", *limits)
    assert translated(pod) == pod


def test_nor_another_isolation() -> None:
    pod = asking("team", {RESOURCE_CORE: "10"})
    pod["metadata"]["annotations"] = {ANNOTATION_ISOLATION: "burst-share"}
    assert translated(pod) == pod


def test_nor_a_pod_with_a_claim_of_that_name() -> None:
    theirs = {"name": CLAIM, "resourceClaimName": "any"}
    pod = asking("team", {RESOURCE_SHARED: "1"}, resourceClaims=[theirs])
    assert translated(pod) == pod


def test_claims_of_the_pod_stay() -> None:
    own = {"name": "net", "resourceClaimName": "nic"}
    pod = asking("team", {RESOURCE_SHARED: "1"}, resourceClaims=[own])
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "net"}]
    made = translated(pod)
    template = {"name": CLAIM, "resourceClaimTemplateName": "enflame-shared-gcu-1"}
    assert made["spec"]["resourceClaims"] == [own, template]
    claims = made["spec"]["containers"][0]["resources"]["claims"]
    assert claims == [{"name": "net"}, {"name": CLAIM, "request": "gcu-0"}]


@pytest.mark.parametrize(("limits", "named", "found"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_nobody_waits_for_the_vendors_scheduler(
    limits: dict[str, str], named: str, found: str
) -> None:
    made = translated(asking("team", limits, schedulerName=named))
    assert made["spec"]["schedulerName"] == found


@pytest.mark.parametrize(("limits", "asked", "left"), SELECTORS.values(), ids=SELECTORS)
@pytest.mark.parametrize("drop", [True, False], ids=["dropped", "kept"])
def test_nobody_waits_for_the_vendors_label(
    limits: dict[str, str], asked: dict[str, str], left: dict[str, str], drop: bool
) -> None:
    rules = LimitRules(frozenset({GCUSHARE}), "default-scheduler", drop_node_selector=drop)
    pod = asking("team", limits, schedulerName=GCUSHARE, nodeSelector=asked)
    assert translated(pod, rules)["spec"]["nodeSelector"] == (left if drop else asked)
