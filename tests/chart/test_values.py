"""The values: what the schema refuses, and in which words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dra_driver.model.card import UNHEALTHY_VALUES
from dra_driver.simulator.description.load import shipped_machines
from tests.chart.helm import CHART, CHECKOUT, Helm, Values

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
SCHEDULER: Values = {"allocator": "scheduler", "schedulerVersion": "1.37.1"}
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())


def test_the_chart_has_nothing_to_complain_about(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", CHART)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alocator": "x"}, "'alocator' not allowed"),
        ({"image": {"name": "x"}}, "at '/image': additional properties 'name' not allowed"),
        ({"image": {"digest": "sha256:abc"}}, "at '/image/digest': 'sha256:abc' does not match"),
        ({"agent": {"port": 1}}, "at '/agent': additional properties 'port' not allowed"),
        ({"efsmi": {"mounts": []}}, "at '/efsmi': additional properties 'mounts' not allowed"),
        (
            {"efsmi": {"hostMounts": [{"path": "/a", "readonly": True}]}},
            "at '/efsmi/hostMounts/0': additional properties 'readonly' not allowed",
        ),
        ({"controller": {"replica": 2}}, "additional properties 'replica' not allowed"),
        ({"simulation": {"machines": {}}}, "additional properties 'machines' not allowed"),
        ({"agent": {"tolerations": [{"Key": "x"}]}}, "at '/agent/tolerations/0': additional"),
        ({"agent": {"affinity": {"node": {}}}}, "at '/agent/affinity': additional properties"),
        ({"agent": {"resources": {"limit": {}}}}, "at '/agent/resources': additional properties"),
        ({"allocator": "kubelet"}, "at '/allocator': value must be one of"),
        ({"schedulerVersion": "1.37"}, "at '/schedulerVersion': '1.37' does not match"),
        ({"injection": "none"}, "at '/injection': value must be one of 'cdi', 'runtime'"),
        ({"logLevel": "trace"}, "at '/logLevel': value must be one of 'debug', 'info'"),
        ({"kubeletRootDir": "var/lib/kubelet"}, "at '/kubeletRootDir': 'var/lib/kubelet' does not"),
        ({"cdiDir": "/var/run/cdi/"}, "at '/cdiDir': '/var/run/cdi/' does not match"),
        ({"controller": {"replicas": 0}}, "at '/controller/replicas': minimum: got 0, want 1"),
        ({"agent": {"maxSurge": 0}}, "at '/agent/maxSurge'"),
        ({"agent": {"presenceInterval": "5s"}}, "at '/agent/presenceInterval': got string, want"),
        ({"simulation": {"machine": "s60"}}, "value must be one of 'mixed-t20', 's60-4'"),
        ({"simulation": {"nodes": {"Node 1": "s60-4"}}}, "'Node 1' not allowed"),
        (
            {"controller": {"ignoredClaimFields": ["a,b"]}},
            "at '/controller/ignoredClaimFields/0': 'a,b' does not match",
        ),
        (
            {"controller": {"unconsideredPlugins": ["NodeName"]}},
            "at '/controller/unconsideredPlugins/0': value must be one of 'NodeResourcesFit'",
        ),
        ({"ownDeviceClasses": ["Mine"]}, "at '/ownDeviceClasses/0': 'Mine' does not match"),
        ({"vendorRuntime": {"policies": True}}, "additional properties 'policies' not allowed"),
        ({"vendorRuntime": {"policy": "yes"}}, "at '/vendorRuntime/policy': got string, want"),
        (
            {"vendorRuntime": {"allowedNamespaces": ["a.b"]}},
            "at '/vendorRuntime/allowedNamespaces/0': 'a.b' does not match",
        ),
        ({"image": {"repository": None}}, "at '/image': missing property 'repository'"),
        ({"schedulerVersion": "1.37.1 or so"}, "at '/schedulerVersion': '1.37.1 or so' does not"),
        *(
            ({name: None}, f"missing property '{name}'")
            for name in ("global", "rbac", "resourceQuota", "nodeFeatureRule", "monitoring")
        ),
        ({"agent": {"logFile": None}}, "at '/agent': missing property 'logFile'"),
    ],
    ids=lambda case: json.dumps(case) if isinstance(case, dict) else "",
)
def test_a_wrong_value_is_refused_by_its_path(helm: Helm, values: Values, message: str) -> None:
    assert message in helm.refusal(values)


def objects_of(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of an object inside `schema`, and the path to it."""
    if schema.get("type") == "object":
        yield path, schema
    for key in ("properties", "definitions"):
        for name, inner in schema.get(key, {}).items():
            yield from objects_of(inner, f"{path}/{name}")
    if "items" in schema:
        yield from objects_of(schema["items"], f"{path}/0")


# Kubernetes owns these; its API server knows them better than a copy here would.
KUBERNETES_OWN = {
    *("nodeAffinity", "podAffinity", "podAntiAffinity"),
    *("updateStrategy", "valueFrom"),
}


def test_no_object_of_the_schema_takes_any_key() -> None:
    open_ones = {
        path.rpartition("/")[2]
        for path, schema in objects_of(SCHEMA)
        if schema.get("additionalProperties") in (None, True)
    }
    assert open_ones == KUBERNETES_OWN | {"global"}


def test_every_property_of_the_schema_is_described() -> None:
    undescribed = [
        f"{path}/{name}"
        for path, schema in objects_of(SCHEMA)
        for name, inner in schema.get("properties", {}).items()
        if not (inner.get("description") or _referred(inner).get("description"))
        and not path.startswith(("/affinity", "/tolerations", "/resources"))
    ]
    assert undescribed == []


def test_the_defaults_are_all_that_the_schema_knows() -> None:
    def keys(values: Values, path: str = "") -> set[str]:
        return {
            key
            for name, value in values.items()
            for key in (f"{path}/{name}", *(keys(value, f"{path}/{name}") if _deep(value) else ()))
        }

    def _deep(value: object) -> bool:
        return isinstance(value, dict) and not {"requests", "limits"} & set(value)

    known = {
        f"{path}/{name}"
        for path, schema in objects_of({"type": "object", "properties": SCHEMA["properties"]})
        for name in schema.get("properties", {})
    }
    of_items = {path for path in known if "/0/" in path}
    assert keys(DEFAULTS) == known - of_items


def test_reasons_why_a_card_is_unhealthy_are_the_same_everywhere() -> None:
    schema = SCHEMA["properties"]["agent"]["properties"]["evictOn"]["items"]["enum"]
    assert tuple(schema) == UNHEALTHY_VALUES
    page = (CHECKOUT / "docs/user/health.md").read_text()
    table = page.partition("| taint value |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == UNHEALTHY_VALUES


def test_the_schema_knows_the_shipped_machines() -> None:
    names, _several_lines = SCHEMA["definitions"]["machine"]["anyOf"]
    assert tuple(names["enum"]) == shipped_machines()


@pytest.mark.parametrize(
    ("values", "flags", "message"),
    [
        ({"mode": "dra"}, ("--kube-version=1.33.9",), "needs 1.34 or newer"),
        (
            {"mode": "dra", "sliceForm": "visible"},
            ("--kube-version=1.35.9",),
            "sliceForm is visible, which needs 1.36 or newer",
        ),
        (
            {"simulation": {"enabled": True}, "efsmi": {"runtimeClassName": "enflame"}},
            (),
            "a simulated node has an efsmi of its own",
        ),
        (
            {"vendorRuntime": {"policy": True}},
            ("--kube-version=1.29.9",),
            "API servers before 1.30 have no admission policies",
        ),
        (
            {"legacyResources": {"schedulerName": "gcushare-scheduler"}},
            (),
            "pods that name it would be given to it again, and wait for ever",
        ),
        ({"allocator": "scheduler"}, (), "Set schedulerVersion to the version of the cluster"),
        (
            SCHEDULER | {"schedulerVersion": "1.36.1"},
            (),
            "allocates a card in two modes (kubernetes#139034)",
        ),
        (SCHEDULER, ("--kube-version=1.35.9",), "before 1.36 it drops shares"),
        (SCHEDULER | {"mode": "device-plugin"}, (), "kube-scheduler allocates ResourceClaims only"),
        (SCHEDULER | {"sliceForm": "hidden"}, (), "kube-scheduler would find no device"),
        (
            SCHEDULER | {"schedulingGate": {"policy": True}, "nomination": {"enabled": False}},
            (),
            "Set schedulingGate.policy=false",
        ),
        ({"legacyResources": {"servedByScheduler": True}}, (), "or allocator=scheduler"),
        (
            {"extender": {"serverSecret": "theirs"}},
            ("--kube-version=1.30.14",),
            "Name both Secrets, or none",
        ),
        (
            {"extender": {"clientSecret": "theirs"}},
            ("--kube-version=1.30.14",),
            "Name both Secrets, or none",
        ),
        (
            {"commonLabels": {"app.kubernetes.io/managed-by": "us"}},
            (),
            'commonLabels has "app.kubernetes.io/managed-by", a label that the chart sets',
        ),
        (
            {"agent": {"podLabels": {"app.kubernetes.io/component": "us"}}},
            (),
            'agent.podLabels has "app.kubernetes.io/component"',
        ),
        (
            {"commonLabels": {"team": "ml"}, "controller": {"podLabels": {"team": "infra"}}},
            (),
            'controller.podLabels has "team"',
        ),
        (
            {"controller": {"advanced": {"leaseDuration": 5}}},
            (),
            "leaseRetry 2, leaseRenewDeadline 10 and leaseDuration 5: no controller starts unless",
        ),
        (
            {
                "agent": {"serviceAccount": {"name": "one"}},
                "controller": {"serviceAccount": {"name": "one"}},
            },
            (),
            'Agents and controller have one service account, "one"',
        ),
        (
            {
                "resourceQuota": {"enabled": True},
                "agent": {"priorityClassName": ""},
                "controller": {"priorityClassName": ""},
            },
            (),
            "Set resourceQuota.enabled=false, or name a class",
        ),
    ],
    ids=[
        "an older server",
        "a server without taints",
        "a simulation with the vendor's runtime",
        "a policy on a server before them",
        "the vendor's scheduler in place of itself",
        "kube-scheduler of an unknown version",
        "a kube-scheduler that allocates twice",
        "kube-scheduler with an older server",
        "kube-scheduler without claims",
        "kube-scheduler with hidden slices",
        "kube-scheduler with the gate",
        "limits that nobody would serve",
        "the extender's certificate alone",
        "its client's certificate alone",
        "a label of the chart's own",
        "a label of the chart's own on pods",
        "a label that all objects have",
        "a lease that ends before its renewal",
        "one account of both programs",
        "a quota for no priority class",
    ],
)
def test_what_cannot_work_is_refused_with_a_remedy(
    helm: Helm, values: Values, flags: tuple[str, ...], message: str
) -> None:
    assert message in helm.refusal(values, *flags)


WITHOUT_LIMITS: dict[str, tuple[Values, tuple[str, ...]]] = {
    "limits are left alone": ({"enabled": False}, ()),
    "no DRA": ({}, ("--kube-version=1.30.14",)),
}


@pytest.mark.parametrize(("legacy", "flags"), WITHOUT_LIMITS.values(), ids=WITHOUT_LIMITS)
def test_a_scheduler_in_place_of_itself_matters_to_limits_that_become_claims_alone(
    helm: Helm, legacy: Values, flags: tuple[str, ...]
) -> None:
    values = {"legacyResources": legacy | {"schedulerName": "gcushare-scheduler"}}
    assert helm.render(values, *flags).agent


@pytest.mark.parametrize(
    "version", ["1.34.4", "1.35.9", "1.36.0", "1.36.3-rc.0", "1.37.1", "v1.36.2-gke.100"]
)
def test_newer_servers_are_taken(helm: Helm, version: str) -> None:
    assert helm.render({}, f"--kube-version={version}").agent


def _referred(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = SCHEMA["definitions"].get(name, {})
    return found
