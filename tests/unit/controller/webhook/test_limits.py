"""What becomes of a pod with the vendor's limits: the same as by the chart's policy."""

from __future__ import annotations

import pytest

from controller.webhook.limits import LimitRules, translate_limits
from dra_driver.asks.claims import CLAIM
from dra_driver.asks.limits import limit_names
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_SHARED
from tests.control_plane.legacy import GCUSHARE, asking
from tests.unit.asks.cases import (
    REFUSED,
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
    assert not limit_names(made)
    cpu = [each.get("cpu") for each in case.limits]
    assert [each["resources"]["limits"].get("cpu") for each in made["spec"]["containers"]] == cpu


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_the_validating_policy_sees_what_cannot_be_translated(case: Case) -> None:
    pod = case.pod("team")
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
