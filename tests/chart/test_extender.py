"""What the chart installs where there is no DRA."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from controller.extender.service import PREFIX
from controller.settings import ControllerSettings
from dra_driver.config.loader import load
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.plugin_device import RESOURCES
from tests.chart.helm import (
    CHART,
    NAMESPACE,
    RELEASE,
    Helm,
    Rendered,
    Values,
    environment,
    fields,
    objects_of,
)
from tests.control_plane.issued import PAGE, cert_manager_manifests

OLD = "--kube-version=1.30.14"
NEW = "--kube-version=1.36.3"
NAME = "gcu-dra-driver-extender"
SERVICE = f"{NAME}.{NAMESPACE}.svc"
WITH_SCHEDULER: Values = {"extender": {"schedulerImage": "kube-scheduler:v1.30.14"}}
OF_DRA = {"DeviceClass", "MutatingAdmissionPolicy"}


@pytest.fixture(scope="module")
def old(helm: Helm) -> Rendered:
    return helm.render(WITH_SCHEDULER, OLD)


def config(rendered: Rendered, key: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(rendered.one("ConfigMap", NAME)["data"][key])
    return found


def secret(rendered: Rendered, name: str) -> dict[str, bytes]:
    [found] = [each for each in rendered.of("Secret") if each["metadata"]["name"] == name]
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


@pytest.mark.parametrize(
    ("values", "version", "has_extender"),
    [
        ({}, "1.36.3", False),
        ({}, "1.30.14", True),
        ({}, "1.33.9", True),
        ({}, "1.34.4", False),
        ({"mode": "device-plugin"}, "1.36.3", True),
        ({"mode": "dra"}, "1.36.3", False),
    ],
    ids=["DRA", "1.30", "1.33", "1.34", "chosen", "DRA chosen"],
)
def test_one_of_two_ways_is_installed(
    helm: Helm, values: Values, version: str, has_extender: bool
) -> None:
    rendered = helm.render(values, f"--kube-version={version}")
    kinds = {each["kind"] for each in rendered}
    names = {each["metadata"]["name"] for each in rendered if each["kind"] in {"Service", "Secret"}}
    assert any("-extender" in name for name in names) is has_extender
    assert (not kinds & OF_DRA) is has_extender
    deployment = rendered.one("Deployment")["spec"]
    assert deployment["replicas"] == (1 if has_extender else 2)
    assert ("strategy" in deployment) is has_extender
    # Whatever the server is by now: it has the rights for one of them.
    mode = environment(rendered.controller["containers"][0])["GCU_MODE"]
    assert (mode == "device-plugin") is has_extender


@pytest.mark.parametrize(
    ("mode", "of_server", "without_dra"),
    [("auto", "true", ""), ("dra", "true", "true"), ("device-plugin", "", "")],
)
def test_dra_can_be_switched_off(
    helm: Helm, tmp_path: Path, mode: str, of_server: str, without_dra: str
) -> None:
    """Helm cannot be told that a server lacks an API, but a template can."""
    shutil.copytree(CHART, tmp_path / "chart")
    (tmp_path / "chart" / "templates" / "preflight.yaml").write_text(
        '{{- $known := dict "KubeVersion" .Capabilities.KubeVersion }}'
        '{{- $lacking := set $known "APIVersions" (slice .Capabilities.APIVersions 0 0) }}'
        '{{- $there := dict "Values" .Values "Capabilities" $lacking }}'
        "kind: Answers\n"
        'of_server: {{ include "gcu.dra" . | quote }}\n'
        'without_dra: {{ include "gcu.dra" $there | quote }}\n'
    )
    text = helm.run("template", RELEASE, tmp_path / "chart", f"--set=mode={mode}", NEW)
    [found] = [each for each in objects_of(text) if each["kind"] == "Answers"]
    assert (found["of_server"], found["without_dra"]) == (of_server, without_dra)


def test_the_service_needs_a_name_that_begins_with_a_letter(helm: Helm) -> None:
    """Unlike all other names (DNS-1035)."""
    refused = helm.refusal({}, OLD, release="1gcu")
    assert '"1gcu-gcu-dra-driver-extender"' in refused
    assert "Set fullnameOverride" in refused
    assert helm.render({"fullnameOverride": "gcu"}, OLD, release="1gcu").of("Service")
    assert helm.render({}, NEW, release="1gcu").agent


@pytest.mark.parametrize("extender", [WITH_SCHEDULER["extender"], {}], ids=["the chart's", "own"])
def test_the_extender_finds_its_certificate(helm: Helm, extender: Values) -> None:
    """And is reached from its own pod alone where its scheduler is in it."""
    rendered = helm.render({"extender": {**extender, "clientSubject": "kube-scheduler"}}, OLD)
    container = rendered.controller["containers"][0]
    environ = environment(container) | dict.fromkeys(fields(container), "field")
    found = load(ControllerSettings, [], environ, prog="controller", description="")
    assert {each["name"]: each["containerPort"] for each in container["ports"]} == {
        "probes": found.http_port,
        "webhook": found.webhook_port,
        **({} if found.extender_host else {"extender": found.extender_port}),
    }
    assert found.extender_host == ("127.0.0.1" if extender else "")
    assert found.extender_client_subject == "kube-scheduler"
    services = {each["metadata"]["name"] for each in rendered.of("Service")}
    assert (NAME in services) is not bool(extender)
    [mount] = [each for each in container["volumeMounts"] if each["name"] == "extender"]
    files = (found.extender_certificate, found.extender_key, found.extender_client_authority)
    assert [str(each) for each in files] == [
        f"{mount['mountPath']}/{key}" for key in ("tls.crt", "tls.key", "ca.crt")
    ]


def test_certificates_are_of_one_authority_and_for_the_names_that_are_called(old: Rendered) -> None:
    ours, theirs = secret(old, NAME), secret(old, f"{NAME}-client")
    issuer = secret(old, f"{NAME}-authority")
    assert issuer["tls.crt"] == ours["ca.crt"] == theirs["ca.crt"]
    authority = x509.load_pem_x509_certificate(ours["ca.crt"])
    for each in (ours, theirs):
        issued = x509.load_pem_x509_certificate(each["tls.crt"])
        issued.verify_directly_issued_by(authority)
        assert (issued.not_valid_after_utc - issued.not_valid_before_utc).days == 365
    client = x509.load_pem_x509_certificate(theirs["tls.crt"])
    assert client.subject.rfc4514_string() == "CN=kube-scheduler"
    server = x509.load_pem_x509_certificate(ours["tls.crt"])
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert SERVICE in names.get_values_for_type(x509.DNSName)


def test_the_clients_certificate_has_the_name_that_is_demanded(helm: Helm) -> None:
    values = {"extender": WITH_SCHEDULER["extender"] | {"clientSubject": "our-scheduler"}}
    issued = secret(helm.render(values, OLD), f"{NAME}-client")["tls.crt"]
    assert x509.load_pem_x509_certificate(issued).subject.rfc4514_string() == "CN=our-scheduler"


def test_certificates_of_somebody_else_are_taken_and_none_are_made(helm: Helm) -> None:
    """Where helm cannot see the cluster it would make others each time."""
    named = {"serverSecret": "theirs", "clientSecret": "theirs-client"}
    webhook = {"serverSecret": "theirs-webhook", "caBundle": "QQ=="}
    values = {"extender": WITH_SCHEDULER["extender"] | named, "webhook": webhook}
    rendered = helm.render(values, OLD)
    assert rendered.of("Secret") == []
    secrets = {
        each["name"]: each["secret"]["secretName"]
        for each in rendered.controller["volumes"]
        if "secret" in each
    }
    assert secrets == {
        "extender": "theirs",
        "extender-client": "theirs-client",
        "webhook": "theirs-webhook",
    }


def test_the_page_asks_cert_manager_for_what_the_chart_serves(helm: Helm) -> None:
    certificates = {
        each["metadata"]["name"]: each
        for each in cert_manager_manifests(PAGE)
        if each["kind"] == "Certificate"
    }
    ours, theirs = certificates["gcu-extender"], certificates["gcu-extender-client"]
    namespace = ours["metadata"]["namespace"]
    named = {
        "serverSecret": ours["spec"]["secretName"],
        "clientSecret": theirs["spec"]["secretName"],
    }
    rendered = helm.render({"extender": named}, OLD)
    service = rendered.one("Service", NAME)["metadata"]["name"]
    assert ours["spec"]["dnsNames"] == [f"{service}.{namespace}.svc"]
    assert theirs["metadata"]["namespace"] == namespace
    assert "server auth" in ours["spec"]["usages"]
    assert "client auth" in theirs["spec"]["usages"]


def test_the_pods_mount_the_secrets_that_helm_makes(old: Rendered) -> None:
    mounted = {
        each["secret"]["secretName"] for each in old.controller["volumes"] if "secret" in each
    }
    made = {each["metadata"]["name"] for each in old.of("Secret")}
    # With the first one anybody could bind pods.
    assert made - mounted == {f"{NAME}-authority", "gcu-dra-driver-webhook-authority"}
    assert mounted < made
    # kube-scheduler reads its certificate when it starts, and so starts anew with another one.
    issued = "gcu.enflame.com/issued"
    [day] = {each["metadata"]["annotations"][issued] for each in old.of("Secret")}
    template = old.one("Deployment")["spec"]["template"]["metadata"]
    assert template["annotations"] == {issued: day}


@pytest.mark.parametrize(
    ("extender", "key", "url", "folder"),
    [
        (
            WITH_SCHEDULER["extender"],
            "scheduler.yaml",
            "https://127.0.0.1:8443",
            "/etc/gcu/extender-client",
        ),
        ({}, "main-scheduler.yaml", f"https://{SERVICE}:443", "/etc/kubernetes/gcu-extender"),
    ],
    ids=["the chart's own scheduler", "the cluster's main one"],
)
def test_both_schedulers_are_told_the_same(
    helm: Helm, extender: Values, key: str, url: str, folder: str
) -> None:
    rendered = helm.render({"extender": extender}, OLD)
    assert set(rendered.one("ConfigMap", NAME)["data"]) == {key}
    [entry] = config(rendered, key)["extenders"]
    assert entry["urlPrefix"] == f"{url}{PREFIX}"
    assert entry["httpTimeout"] == "5s"
    assert entry["tlsConfig"]["serverName"] == SERVICE
    assert entry["tlsConfig"]["certFile"] == f"{folder}/tls.crt"
    assert entry["nodeCacheCapable"] is True
    assert entry["ignorable"] is False
    verbs = {name: verb for name, verb in entry.items() if name.endswith("Verb")}
    assert verbs == {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    managed = {each["name"] for each in entry["managedResources"]}
    assert managed == set(RESOURCES.values())
    assert not any(each["ignoredByScheduler"] for each in entry["managedResources"])


def test_the_second_scheduler_has_the_vendors_name_and_kubernetes_own_rights(old: Rendered) -> None:
    found = config(old, "scheduler.yaml")
    assert found["profiles"] == [{"schedulerName": "gcushare-scheduler"}]
    [container] = [each for each in old.controller["containers"] if each["name"] != "controller"]
    assert container["image"] == "kube-scheduler:v1.30.14"
    roles = {each["roleRef"]["name"] for each in old.of("ClusterRoleBinding")}
    assert roles >= {"system:kube-scheduler", "system:volume-scheduler"}
    lease = found["leaderElection"]
    assert lease["resourceNamespace"] == NAMESPACE
    rules = old.one("Role", "controller")["rules"]
    assert any(lease["resourceName"] in each.get("resourceNames", ()) for each in rules)


def test_the_second_scheduler_takes_more_flags(helm: Helm) -> None:
    flags = ["--feature-gates=DynamicResourceAllocation=false"]
    values: Values = {"extender": {"schedulerImage": "scheduler:1", "schedulerFlags": flags}}
    containers = helm.render(values, OLD).controller["containers"]
    assert [each.get("args") for each in containers if each["name"] == "kube-scheduler"] == [flags]


def test_without_an_image_there_is_no_second_scheduler(helm: Helm) -> None:
    rendered = helm.render({}, OLD)
    assert len(rendered.controller["containers"]) == 1
    assert "kube-scheduler" not in json.dumps(rendered.of("ClusterRoleBinding"))
    assert config(rendered, "main-scheduler.yaml")["extenders"]


@pytest.mark.parametrize(
    ("extender", "served"),
    [
        ({}, ["default-scheduler", "gcushare-scheduler"]),
        (
            {"schedulerNames": ["default-scheduler", "a", "b"]},
            ["default-scheduler", "a", "b"],
        ),
    ],
    ids=["the vendor's name", "other names"],
)
def test_the_main_scheduler_serves_the_vendors_name(
    helm: Helm, extender: Values, served: list[str]
) -> None:
    found = config(helm.render({"extender": extender}, OLD), "main-scheduler.yaml")
    assert [each["schedulerName"] for each in found["profiles"]] == served


def test_the_agent_may_tell_its_node_where_there_is_no_dra(helm: Helm, old: Rendered) -> None:
    def may_patch_nodes(rendered: Rendered) -> bool:
        rules: list[Object] = rendered.one("ClusterRole", ":agent")["rules"]
        return any("nodes/status" in each["resources"] for each in rules)

    assert may_patch_nodes(old)
    assert not may_patch_nodes(helm.render({}))
