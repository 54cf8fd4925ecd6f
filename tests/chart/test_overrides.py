"""Values that every chart has: names, namespaces, labels, accounts, roles, images."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from tests.chart.helm import NAMESPACE, Helm, Rendered, environment
from tests.chart.test_objects import CLUSTER_SCOPED

OLD = "--kube-version=1.30.14"
WEBHOOK = "--kube-version=1.34.4"
EVERYWHERE = pytest.mark.parametrize(
    "flags", [(), (OLD,), (WEBHOOK,)], ids=["1.36", "1.30", "1.34"]
)
PROGRAMS = ("agent", "controller")
ROLES = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
SCHEDULER = {"extender": {"schedulerImage": "kube-scheduler:v1.30.14"}}


def pod_of(found: Rendered, program: str) -> Object:
    kind = "DaemonSet" if program == "agent" else "Deployment"
    template: Object = found.one(kind)["spec"]["template"]
    return template


def texts(value: Any) -> list[str]:
    """All texts in an object."""
    if isinstance(value, dict):
        return [each for part in value.values() for each in texts(part)]
    if isinstance(value, list):
        return [each for part in value for each in texts(part)]
    return [str(value)]


def test_another_name(helm: Helm) -> None:
    found = helm.render({"nameOverride": "gcus"}, release="a")
    named = [each["metadata"]["name"] for each in found if each["kind"] not in CLUSTER_SCOPED]
    assert {name for name in named if not name.startswith("a-gcus-")} <= {"gcu-dra-controller"}
    assert {each["metadata"]["labels"]["app.kubernetes.io/name"] for each in found} == {
        "gcu-dra-driver"  # by which programs find each other
    }


@EVERYWHERE
def test_another_namespace(helm: Helm, flags: tuple[str, ...]) -> None:
    values = {"namespaceOverride": "gcus", "networkPolicy": {"enabled": True}, **SCHEDULER}
    for each in helm.render(values, *flags):
        assert each["metadata"].get("namespace", "gcus") in ("gcus", "kube-system")
        if each["kind"] == "Job":  # it says how helm is called
            continue
        assert not [text for text in texts(each) if NAMESPACE in text], each["metadata"]["name"]


@EVERYWHERE
def test_labels_of_everything(helm: Helm, flags: tuple[str, ...]) -> None:
    found = helm.render({"commonLabels": {"cost": "team-a"}}, *flags)
    pods = [pod_of(found, program) for program in PROGRAMS]
    for each in [*found, *pods]:
        assert each["metadata"]["labels"]["cost"] == "team-a"
    assert "cost" not in found.one("DaemonSet")["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_pods(helm: Helm, program: str) -> None:
    own = {
        "podLabels": {"mesh": "off"},
        "podAnnotations": {"example.com/scan": "no"},
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "seLinuxOptions": {"type": "spc_t"},
    }
    found = helm.render({program: own})
    pod = pod_of(found, program)
    assert pod["metadata"]["labels"]["mesh"] == "off"
    assert pod["metadata"]["annotations"]["example.com/scan"] == "no"
    assert pod["spec"]["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
    assert environment(pod["spec"]["containers"][0])["HTTPS_PROXY"] == "http://proxy:3128"
    [other] = set(PROGRAMS) - {program}
    assert "mesh" not in pod_of(found, other)["metadata"]["labels"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("create", [True, False])
def test_an_account_of_another_name(helm: Helm, program: str, create: bool) -> None:
    account = {"create": create, "name": "mine", "annotations": {"iam": "role"}}
    found = helm.render({program: {"serviceAccount": account}}, "--set=vendorRuntime.policy=true")
    accounts = {each["metadata"]["name"]: each for each in found.of("ServiceAccount")}
    assert ("mine" in accounts) == create
    assert f"gcu-dra-driver-{program}" not in accounts
    if create:
        assert accounts["mine"]["metadata"]["annotations"] == {"iam": "role"}
    assert pod_of(found, program)["spec"]["serviceAccountName"] == "mine"
    bindings = [*found.of("ClusterRoleBinding"), *found.of("RoleBinding")]
    subjects = {each["name"] for binding in bindings for each in binding["subjects"]}
    assert "mine" in subjects
    assert f"gcu-dra-driver-{program}" not in subjects
    rendered = [text for each in found for text in texts(each)]
    assert not [text for text in rendered if text.endswith(f":gcu-dra-driver-{program}")]
    assert [text for text in rendered if f"system:serviceaccount:{NAMESPACE}:mine" in text]


@EVERYWHERE
def test_without_roles(helm: Helm, flags: tuple[str, ...]) -> None:
    assert ROLES & {each["kind"] for each in helm.render(SCHEDULER, *flags)}
    without = helm.render({"rbac": {"create": False}, **SCHEDULER}, *flags)
    assert not ROLES & {each["kind"] for each in without}


@pytest.mark.parametrize(
    ("values", "start"),
    [
        ({}, "localhost/gcu-dra-driver:"),
        (
            {"image": {"registry": "r.example.com:5000", "repository": "gcu"}},
            "r.example.com:5000/gcu:",
        ),
        (
            {
                "image": {"registry": "other", "repository": "gcu"},
                "global": {"imageRegistry": "r.io"},
            },
            "r.io/gcu:",
        ),
        (
            {"image": {"registry": "r.io", "digest": f"sha256:{'a' * 64}"}},
            "r.io/localhost/gcu-dra-driver@sha256:",
        ),
    ],
    ids=["none", "of the chart", "of all charts", "with a digest"],
)
def test_the_registry(helm: Helm, values: dict[str, Any], start: str) -> None:
    found = helm.render({"simulation": {"enabled": True}, **values})
    pods = [pod_of(found, program) for program in PROGRAMS] + [
        each["spec"]["template"] for each in found.of("Job")
    ]
    for pod in pods:
        for each in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]:
            assert each["image"].startswith(start)


def test_another_update_strategy(helm: Helm) -> None:
    found = helm.render({"agent": {"updateStrategy": {"type": "OnDelete"}}})
    assert found.one("DaemonSet")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_a_quota_for_the_priority_classes(helm: Helm) -> None:
    assert not helm.render().of("ResourceQuota")
    found = helm.render({"resourceQuota": {"enabled": True, "pods": 20}})
    quota = found.one("ResourceQuota")["spec"]
    assert quota["hard"] == {"pods": "20"}
    [scope] = quota["scopeSelector"]["matchExpressions"]
    used = {pod_of(found, program)["spec"]["priorityClassName"] for program in PROGRAMS}
    assert set(scope["values"]) == used


def test_the_resources_of_kube_scheduler(helm: Helm) -> None:
    resources = {"limits": {"memory": "1Gi"}}
    values = {"extender": SCHEDULER["extender"] | {"schedulerResources": resources}}
    containers = helm.render(values, OLD).controller["containers"]
    [scheduler] = [each for each in containers if each["name"] == "kube-scheduler"]
    assert scheduler["resources"] == resources
