"""`legacyResources.enabled`: always, never, or as the controller decides."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from tests.chart.helm import NAMESPACE, Helm, Rendered, Values, environment

NAME = "legacy-resources.gcu.enflame.com"
CONFIG = "gcu-dra-driver-limits"
ALWAYS: Values = {"legacyResources": {"enabled": True}}
NEVER: Values = {"legacyResources": {"enabled": False}}
BELOW = "--kube-version=1.34.4"
KINDS = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
CONDITION = {
    "name": "limits-become-claims",
    "expression": (
        'params.metadata.?annotations[?"gcu.enflame.com/limits-become-claims"].orValue("")'
        ' == "true"'
    ),
}


def configured(rendered: Rendered) -> str:
    """The ServiceAccount that the controller is to write; empty where it decides nothing."""
    return environment(rendered.controller["containers"][0])["GCU_LEGACY_RESOURCES_CONFIG"]


def role(rendered: Rendered) -> list[Object]:
    """The rules about ServiceAccounts that the controller has."""
    return [
        rule
        for kind in ("Role", "ClusterRole")
        for each in rendered.of(kind)
        if "controller" in each["metadata"]["name"]
        for rule in each["rules"]
        if "serviceaccounts" in rule["resources"]
    ]


def test_the_policies_have_the_decision_as_parameters(helm: Helm) -> None:
    rendered = helm.render()
    for kind in KINDS:
        spec = rendered.one(kind, NAME)["spec"]
        assert spec["paramKind"] == {"apiVersion": "v1", "kind": "ServiceAccount"}
        assert spec["matchConditions"][0] == CONDITION
        binding = rendered.one(f"{kind}Binding", NAME)["spec"]
        assert binding["paramRef"] == {
            "name": CONFIG,
            "namespace": NAMESPACE,
            "parameterNotFoundAction": "Allow",
        }


def test_the_chart_leaves_the_data_to_the_controller(helm: Helm) -> None:
    """An upgrade of the release, or a tool that compares, would undo the decision."""
    rendered = helm.render()
    [config] = [
        each for each in rendered.of("ServiceAccount") if each["metadata"]["name"] == CONFIG
    ]
    assert config.keys() == {"apiVersion", "kind", "metadata", "automountServiceAccountToken"}
    assert config["metadata"]["namespace"] == NAMESPACE
    assert configured(rendered) == CONFIG
    assert role(rendered) == [
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts"],
            "resourceNames": [CONFIG],
            "verbs": ["list", "watch", "patch"],
        }
    ]


@pytest.mark.parametrize(
    ("values", "flags"),
    [(ALWAYS, ()), (NEVER, ()), ({"mode": "device-plugin"}, ()), ({}, ("--kube-version=1.30.14",))],
    ids=["always", "never", "device plugins", "no DRA"],
)
def test_elsewhere_nothing_is_decided(helm: Helm, values: Values, flags: tuple[str, ...]) -> None:
    rendered = helm.render(values, *flags)
    assert configured(rendered) == ""
    assert role(rendered) == []
    assert CONFIG not in {each["metadata"]["name"] for each in rendered}
    for kind in KINDS:
        for each in rendered.of(kind) + rendered.of(f"{kind}Binding"):
            assert not {"paramKind", "paramRef"} & each["spec"].keys()


def test_without_a_decision_to_make_pods_that_would_wait_for_ever_are_kept_out(helm: Helm) -> None:
    rendered = helm.render(ALWAYS)
    assert {rendered.one(kind, NAME)["spec"]["failurePolicy"] for kind in KINDS} == {"Fail"}
    assert limits_webhook(helm.render(ALWAYS, BELOW))["failurePolicy"] == "Fail"


def test_a_failure_refuses_nobody_while_limits_may_be_somebody_elses(helm: Helm) -> None:
    """API servers read parameters before the conditions: Fail would be for every pod there is."""
    rendered = helm.render()
    assert {rendered.one(kind, NAME)["spec"]["failurePolicy"] for kind in KINDS} == {"Ignore"}
    assert limits_webhook(helm.render({}, BELOW))["failurePolicy"] == "Ignore"


def limits_webhook(rendered: Rendered) -> Object:
    hooks = rendered.one("MutatingWebhookConfiguration")["webhooks"]
    [found] = [each for each in hooks if each["name"].startswith("limits.")]
    limits: Object = found
    return limits


def test_what_keeps_its_limits_is_refused_below_1_36_too(helm: Helm) -> None:
    policy = helm.render({}, BELOW).one("ValidatingAdmissionPolicy", NAME)["spec"]
    assert policy["matchConditions"][0] == CONDITION
    assert "did not answer just now" in policy["validations"][-1]["message"]
    always = helm.render(ALWAYS, BELOW).one("ValidatingAdmissionPolicy", NAME)["spec"]
    assert "did not answer" not in always["validations"][-1]["message"]


@pytest.mark.parametrize(
    ("agent", "labels"),
    [
        ({}, "enflame.com/gcushare=true"),
        ({"nodeSelector": {"gcu": "yes", "zone": "a"}}, "gcu=yes zone=a"),
        ({"affinity": {"podAffinity": {}}}, ""),
    ],
    ids=["default", "a selector", "an affinity"],
)
def test_the_label_that_gives_a_node_an_agent(helm: Helm, agent: Values, labels: str) -> None:
    [container] = helm.render({"agent": agent}).controller["containers"]
    assert environment(container)["GCU_AGENT_LABELS"] == labels
    notes = helm.notes({"agent": agent})
    assert (f"kubectl label nodes NODE {labels}\n" in notes) is bool(labels)


@pytest.mark.parametrize(("values", "said"), [({}, True), (ALWAYS, False), (NEVER, False)])
def test_the_notes_say_where_the_decision_stands(helm: Helm, values: Values, said: bool) -> None:
    assert (f"get serviceaccount {CONFIG}" in helm.notes(values)) is said
