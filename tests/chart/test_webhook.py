"""What the chart installs for Kubernetes 1.34 and 1.35, without DRA, and for kube-scheduler."""

from __future__ import annotations

import base64
from typing import Final

import pytest
from cryptography import x509

from controller.settings import ControllerSettings
from controller.webhook.service import AMOUNTS, CAPACITY, GATE, LIMITS
from dra_driver.config.device_config import GcuConfig
from dra_driver.config.loader import load
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    CLASS_ADMIN,
    CLASS_DRS,
    CLASS_LIMIT_PREFIX,
    CLASS_WHOLE,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from tests.chart.helm import NAMESPACE, Helm, Rendered, Values, environment, fields

NO_AMOUNTS: Final = {"api_version", "kind", "packing", "device_metadata"}
"""Fields of GcuConfig that ask for no amount: kube-scheduler need not read them."""

BELOW, FROM = "--kube-version=1.34.4", "--kube-version=1.36.3"
WITHOUT_DRA = "--kube-version=1.30.14"
NAME = "gcu-dra-driver-webhook"
WEBHOOK, POLICY = "MutatingWebhookConfiguration", "MutatingAdmissionPolicy"
BY_SCHEDULER: Values = {"allocator": "scheduler", "schedulerVersion": "1.37.1"}
GATED: Values = {"schedulingGate": {"policy": True}}


@pytest.fixture(scope="module")
def below(helm: Helm) -> Rendered:
    return helm.render(GATED, BELOW)


@pytest.fixture(scope="module")
def without_dra(helm: Helm) -> Rendered:
    return helm.render({}, WITHOUT_DRA)


def webhooks(rendered: Rendered) -> dict[str, Object]:
    return {each["name"]: each for each in rendered.one(WEBHOOK)["webhooks"]}


def secret(rendered: Rendered, name: str) -> dict[str, bytes]:
    [found] = [each for each in rendered.of("Secret") if each["metadata"]["name"] == name]
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


@pytest.mark.parametrize(
    ("version", "has_webhook"),
    [("1.34.4", True), ("1.35.4", True), ("1.36.3", False), ("1.37.1", False)],
)
def test_a_webhook_or_policies(helm: Helm, version: str, has_webhook: bool) -> None:
    """What refuses a pod in words is a policy on all of them."""
    rendered = helm.render(GATED, f"--kube-version={version}")
    assert bool(rendered.of(WEBHOOK)) is has_webhook
    assert bool(rendered.of(POLICY)) is not has_webhook
    assert bool(rendered.of("Secret")) is bool(rendered.of("Service")) is has_webhook
    validating = {each["metadata"]["name"] for each in rendered.of("ValidatingAdmissionPolicy")}
    assert "legacy-resources.gcu.enflame.com" in validating


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({}, {"amounts", "limits"}),
        (GATED, {"amounts", "limits", "scheduling-gate"}),
        ({"legacyResources": {"enabled": False}}, {"amounts"}),
    ],
    ids=["default", "with the gate", "without limits"],
)
def test_each_value_has_its_webhook(helm: Helm, values: Values, names: set[str]) -> None:
    found = webhooks(helm.render(values, BELOW))
    assert found.keys() == {f"{name}.gcu.enflame.com" for name in names}


@pytest.mark.parametrize(
    ("values", "version", "has_webhook"),
    [
        ({}, "1.30.14", True),
        ({}, "1.33.9", True),
        ({"mode": "device-plugin"}, "1.36.3", True),
        ({"mode": "device-plugin"}, "1.34.4", True),
        ({}, "1.29.14", False),
        ({"legacyResources": {"enabled": False}}, "1.30.14", False),
    ],
    ids=["1.30", "1.33", "DRA switched off", "the same below 1.36", "older", "switched off"],
)
def test_without_dra_limits_by_memory_and_compute_alone(
    helm: Helm, values: Values, version: str, has_webhook: bool
) -> None:
    rendered = helm.render(GATED | values, f"--kube-version={version}")
    kinds = [LIMITS] if has_webhook else []
    configured = rendered.of(WEBHOOK)
    assert [
        each["clientConfig"]["service"]["path"] for one in configured for each in one["webhooks"]
    ] == kinds
    policies = {each["metadata"]["name"] for each in rendered.of("ValidatingAdmissionPolicy")}
    assert ("measured-limits.gcu.enflame.com" in policies) is has_webhook
    assert not rendered.of(POLICY)
    environ = environment(rendered.controller["containers"][0])
    assert ("GCU_WEBHOOK_PORT" in environ) is has_webhook
    if has_webhook:
        assert environ["GCU_WEBHOOK_PORT"] != environ["GCU_EXTENDER_PORT"]


def test_without_dra_no_other_pod_waits_for_the_webhook(helm: Helm) -> None:
    labels = {"example.com/gcu": "ours"}
    rendered = helm.render({"legacyResources": {"namespaceLabels": labels}}, WITHOUT_DRA)
    [found] = rendered.one(WEBHOOK)["webhooks"]
    assert (found["failurePolicy"], found["sideEffects"]) == ("Fail", "None")
    assert found["namespaceSelector"] == {"matchLabels": labels}
    [condition] = found["matchConditions"]
    assert "enflame.com/gcu-memory" in condition["expression"]
    assert "enflame.com/shared-gcu" not in condition["expression"]
    policy = rendered.one("ValidatingAdmissionPolicy", "measured-limits")["spec"]
    assert policy["matchConditions"] == [condition]
    assert policy["matchConstraints"]["namespaceSelector"] == found["namespaceSelector"]


def test_paths_and_failure_policies(below: Rendered) -> None:
    found = {
        each["clientConfig"]["service"]["path"]: each["failurePolicy"]
        for each in webhooks(below).values()
    }
    assert found == {AMOUNTS: "Fail", LIMITS: "Ignore", GATE: "Ignore"}
    for each in webhooks(below).values():
        assert (each["sideEffects"], each["timeoutSeconds"]) == ("None", 5)
        assert each["matchConditions"]


@pytest.mark.parametrize("rendered", ["below", "without_dra"])
def test_api_servers_reach_and_trust_the_controller(
    request: pytest.FixtureRequest, rendered: str
) -> None:
    below: Rendered = request.getfixturevalue(rendered)
    service, container = below.one("Service", NAME), below.controller["containers"][0]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    [port] = service["spec"]["ports"]
    environ = environment(container) | dict.fromkeys(fields(container), "field")
    settings = load(ControllerSettings, [], environ, prog="controller", description="")
    assert ports[port["targetPort"]] == settings.webhook_port
    [mount] = [each for each in container["volumeMounts"] if each["name"] == "webhook"]
    files = (settings.webhook_certificate, settings.webhook_key)
    assert [str(each) for each in files] == [
        f"{mount['mountPath']}/{key}" for key in ("tls.crt", "tls.key")
    ]
    ours, issuer = secret(below, NAME), secret(below, f"{NAME}-authority")
    for each in webhooks(below).values():
        client = each["clientConfig"]
        assert base64.b64decode(client["caBundle"]) == ours["ca.crt"] == issuer["tls.crt"]
        named = client["service"]
        assert (named["name"], named["namespace"]) == (service["metadata"]["name"], NAMESPACE)
        assert named["port"] == port["port"]
    server = x509.load_pem_x509_certificate(ours["tls.crt"])
    server.verify_directly_issued_by(x509.load_pem_x509_certificate(ours["ca.crt"]))
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert f"{NAME}.{NAMESPACE}.svc" in names.get_values_for_type(x509.DNSName)


def test_values_that_the_webhook_heeds(helm: Helm) -> None:
    values: Values = {
        "ownDeviceClasses": ["a.example.com", "b.example.com"],
        "legacyResources": {"schedulerName": "volcano", "dropNodeSelector": False},
    }
    rendered = helm.render(values, BELOW)
    container = rendered.controller["containers"][0]
    environ = environment(container) | dict.fromkeys(fields(container), "field")
    settings = load(ControllerSettings, [], environ, prog="controller", description="")
    assert settings.webhook_device_classes == "a.example.com,b.example.com"
    assert settings.webhook_scheduler_names == "gcushare-scheduler"
    assert settings.webhook_scheduler_name == "volcano"
    assert not settings.webhook_drop_node_selector
    [condition] = webhooks(rendered)["amounts.gcu.enflame.com"]["matchConditions"]
    assert '"a.example.com","b.example.com"' in condition["expression"]


def test_pods_whose_node_is_named(helm: Helm) -> None:
    """Those with claims, and those with limits of which kube-scheduler makes claims itself."""
    values: Values = BY_SCHEDULER | {"ownDeviceClasses": ["a.example.com"]}
    served: Values = values | {"legacyResources": {"servedByScheduler": True}}
    first, second = (
        webhooks(helm.render(each))["nomination.gcu.enflame.com"]["matchConditions"][0]
        for each in (values, served)
    )
    assert second["expression"].startswith(first["expression"])
    of_classes = [f"{CLASS_LIMIT_PREFIX}{name}" for name in (CLASS_DRS, "a.example.com")]
    for limit in (RESOURCE_WHOLE, *of_classes):
        assert f'"{limit}"' not in first["expression"]
        assert f'"{limit}"' in second["expression"]
    assert RESOURCE_SHARED not in second["expression"]


@pytest.mark.parametrize("names_nodes", [True, False])
def test_amounts_that_are_written_for_kube_scheduler(helm: Helm, names_nodes: bool) -> None:
    """Of claims alone, and of no other claim: it would wait for the webhook."""
    rendered = helm.render(BY_SCHEDULER | {"nomination": {"enabled": names_nodes}})
    found = webhooks(rendered)
    assert ("nomination.gcu.enflame.com" in found) is names_nodes
    written = found["capacity.gcu.enflame.com"]
    assert written["clientConfig"]["service"]["path"] == CAPACITY
    assert (written["failurePolicy"], written["sideEffects"]) == ("Fail", "None")
    assert (written["timeoutSeconds"], written["matchPolicy"]) == (5, "Equivalent")
    assert written["rules"] == [
        {
            "apiGroups": ["resource.k8s.io"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["resourceclaims"],
            "scope": "Namespaced",
        }
    ]
    asks, differs = (each["expression"] for each in written["matchConditions"])
    missing = {
        each for each in GcuConfig.model_fields.keys() - NO_AMOUNTS if f'"{each}"' not in asks
    }
    assert not missing, f"{missing}: gcu.amounts.fields, or, asking for no amount, NO_AMOUNTS"
    assert '"packing"' not in asks
    assert '"deviceMetadata"' not in asks
    assert f'["{CLASS_WHOLE}","{CLASS_ADMIN}"]' in asks
    assert differs == 'request.operation == "CREATE" || object.spec != oldObject.spec'
    policy = rendered.one("ValidatingAdmissionPolicy", "config-amounts.gcu.enflame.com")
    assert policy["spec"]["validations"][0]["expression"].startswith("has(dyn(object).spec.spec)")
    container = rendered.controller["containers"][0]
    assert environment(container)["GCU_ALLOCATOR"] == "scheduler"
    assert "webhook" in {each["name"] for each in container["ports"]}


@pytest.mark.parametrize("allocator", ["controller", "scheduler"])
def test_limits_by_memory_and_compute_become_claims(helm: Helm, allocator: str) -> None:
    """Where kube-scheduler allocates, the other webhook writes what these ask for."""
    values: Values = {"allocator": allocator, "schedulerVersion": "1.37.1"}
    policy = helm.render(values).one(POLICY, "legacy-resources.gcu.enflame.com")["spec"]
    [translatable] = [
        each["expression"] for each in policy["variables"] if each["name"] == "translatable"
    ]
    assert "!variables.measured || " in translatable


def test_a_certificate_of_somebody_else(helm: Helm) -> None:
    """API servers must be told its CA, or cert-manager tells them."""
    refused = helm.refusal({"webhook": {"serverSecret": "theirs"}}, BELOW)
    assert "neither webhook.caBundle nor webhook.annotations" in refused
    annotations = {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/theirs"}
    rendered = helm.render(
        {"webhook": {"serverSecret": "theirs", "annotations": annotations}}, BELOW
    )
    assert rendered.of("Secret") == []
    assert rendered.one(WEBHOOK)["metadata"]["annotations"] == annotations
    assert all("caBundle" not in each["clientConfig"] for each in webhooks(rendered).values())
    given = helm.render({"webhook": {"serverSecret": "theirs", "caBundle": "QQ=="}}, BELOW)
    assert {each["clientConfig"]["caBundle"] for each in webhooks(given).values()} == {"QQ=="}


def test_the_service_needs_a_name_that_begins_with_a_letter(helm: Helm) -> None:
    refused = helm.refusal({}, BELOW, release="1gcu")
    assert '"1gcu-gcu-dra-driver-webhook"' in refused
    assert helm.render({}, FROM, release="1gcu").agent
