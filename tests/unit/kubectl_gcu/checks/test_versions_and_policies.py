"""Faults of versions, rights and policies: each alone, in a healthy cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dra_driver.kube.api import ServerVersion
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ANNOTATION_SCHEDULER_VERSION, DRIVER
from kubectl_gcu.checks.installation import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    POLICIES,
    POLICY_BINDINGS,
    WEBHOOKS,
    Installation,
)
from tests.unit.kubectl_gcu.checks.installations import (
    HEALTHY,
    by_limits,
    found_in,
    node,
    part,
    with_objects,
    with_pods,
    with_state,
)


def server(minor: int, of: Installation = HEALTHY) -> Installation:
    return replace(of, server=ServerVersion(1, minor, f"v1.{minor}.0"))


def agents(*pods: Object) -> Installation:
    return with_state(pods=(part("controller", "b"), *pods))


def limits(kubelet: str, injection: str = "cdi") -> Installation:
    """Without DRA, on a runtime without CDI."""
    found = by_limits()
    [served, other] = found.state.nodes
    info = {"kubeletVersion": kubelet, "containerRuntimeVersion": "containerd://1.6.36"}
    old = {**served, "status": {**served["status"], "nodeInfo": info}}
    agent = part("agent", "a", GCU_INJECTION=injection)
    return with_state(found, nodes=(old, other), pods=(part("controller", "b"), agent))


def configured(webhook: str) -> Object:
    """The chart's MutatingWebhookConfiguration with this webhook."""
    webhooks = [{"name": f"{webhook}.gcu.enflame.com"}]
    return {"metadata": {"name": "gcu.enflame.com"}, "webhooks": webhooks}


def without_right(resource: str, verb: str) -> Installation:
    """Neither of the two roles has it."""
    roles = copy.deepcopy(HEALTHY.objects[CLUSTER_ROLES])
    for role in roles:
        role["rules"] = [
            rule
            for rule in role["rules"]
            if (rule["resources"], rule["verbs"]) != ([resource], [verb])
        ]
    return with_objects(CLUSTER_ROLES, *roles)


def with_rules(name: str, change: Callable[[Object], Object]) -> Installation:
    """The rules of that role are changed."""
    roles = copy.deepcopy(HEALTHY.objects[CLUSTER_ROLES])
    for role in roles:
        if role["metadata"]["name"] == name:
            role["rules"] = [change(rule) for rule in role["rules"]]
    return with_objects(CLUSTER_ROLES, *roles)


def of_any_resource(rule: Object) -> Object:
    """As RBAC allows it: the subresource of any resource."""
    [resource] = rule["resources"]
    _, slash, subresource = resource.partition("/")
    return rule | {"resources": [f"*/{subresource}"]} if slash else rule


def of_this_driver(rule: Object) -> Object:
    """As the chart writes it; the API server checks such a right by the driver's name."""
    named = rule["resources"] == ["resourceclaims/driver"]
    return rule | {"resourceNames": [DRIVER]} if named else rule


def of_one_node(rule: Object) -> Object:
    return rule | {"resourceNames": ["a"]} if rule["resources"] == ["nodes"] else rule


def written(of: Object, *entries: tuple[str, Object], **more: Any) -> Object:
    fields = [{"manager": name, "fieldsV1": each, **more} for name, each in entries]
    labels = {"app.kubernetes.io/name": "gcu-dra-driver"}
    return {**of, "metadata": {**of["metadata"], "labels": labels, "managedFields": fields}}


BY_CHART = {"f:metadata": {"f:labels": {"f:helm.sh/chart": {}}}, "f:spec": {"f:validations": {}}}
POLICY, *OTHER_POLICIES = HEALTHY.objects[POLICIES]
ANOTHER_CHARTS: Object = {
    "metadata": {
        "name": "other",
        "managedFields": [
            {"manager": "helm", "fieldsV1": BY_CHART},
            {"manager": "kubectl-edit", "fieldsV1": {"f:rules": {}}},
        ],
    },
    "rules": [],
}
EDITED = written(POLICY, ("helm", BY_CHART), ("kubectl-edit", {"f:spec": {"f:validations": {}}}))


def by_scheduler(version: str, *images: str) -> Installation:
    """kube-scheduler allocates, with the chart's `schedulerVersion`; pods of it with these
    images."""
    controller = part("controller", "b", GCU_ALLOCATOR="scheduler")
    if version:
        controller["metadata"]["annotations"] = {ANNOTATION_SCHEDULER_VERSION: version}
    schedulers = [
        {
            "metadata": {"namespace": "kube-system", "name": "kube-scheduler-b", "uid": image},
            "spec": {"nodeName": "b", "containers": [{"name": "kube-scheduler", "image": image}]},
            "status": {"phase": "Running"},
        }
        for image in images
    ]
    return with_state(pods=(part("agent", "a"), controller, *schedulers))


FAULTS: dict[str, tuple[Installation, str]] = {
    "a server that is too new": (
        server(38),
        "untested-server: API server: it is v1.38.0, and the driver was tested up to 1.37. ",
    ),
    "a mode that the server has not": (
        server(30, agents(part("agent", "a", GCU_MODE="dra"))),
        "server-too-old: API server: it is v1.30.0, which has no resource.k8s.io/v1, and the ",
    ),
    "slices that the server has not": (
        server(35, agents(part("agent", "a", GCU_MODE="auto", GCU_SLICE_FORM="visible"))),
        "server-too-old: API server: it is v1.35.0, which drops device taints, and slices are to ",
    ),
    "another kube-scheduler": (
        by_scheduler("1.37.1", "registry.k8s.io/kube-scheduler:v1.36.1"),
        (
            "other-scheduler: pod kube-system/kube-scheduler-b: it is kube-scheduler 1.36.1, and "
            "the driver was installed for 1.37.1. Run helm upgrade, with schedulerVersion if "
        ),
    ),
    "a kubelet that is too old": (
        with_state(nodes=(node("a", info={"kubeletVersion": "v1.33.9"}), node("b"))),
        "old-kubelet: node a: its kubelet is v1.33.9, and serves no claims. Upgrade it to 1.34",
    ),
    "a runtime without CDI": (
        with_state(nodes=(node("a", info={"containerRuntimeVersion": "containerd://1.6.36"}),)),
        (
            "no-cdi: node a: its container runtime is containerd://1.6.36, which adds no CDI "
            "devices to containers. Upgrade it to containerd 2, or CRI-O 1.23 or newer."
        ),
    ),
    "a runtime without CDI, without DRA": (
        limits("v1.30.14"),
        (
            "no-cdi: node a: its container runtime is containerd://1.6.36, which adds no CDI "
            "devices to containers. Upgrade it to containerd 2, or CRI-O 1.23 or newer, or set "
            "injection: runtime"
        ),
    ),
    "an update that does not end": (
        with_pods(part("agent", "a", version="0.0.9")),
        (
            "mixed-versions: driver: its programs are of the versions 0.0.9, 0.1.0; 0.0.9 are the "
            "agent of node a. Wait"
        ),
    ),
    "another kubectl gcu": (
        with_state(
            pods=(part("agent", "a", version="9.0"), part("controller", "b", version="9.0"))
        ),
        "other-version: kubectl gcu: it is 0.1.0, and the driver is 9.0. Install the same version",
    ),
    "a right that was taken": (
        without_right("resourceclaims/status", "patch"),
        "right-missing: account gcu/agent: the agent may not patch resourceclaims/status. Run ",
    ),
    "a right for one name": (
        with_rules("agent", of_one_node),
        "right-missing: account gcu/agent: the agent may not get nodes. Run ",
    ),
    "no binding of a role": (
        with_objects(CLUSTER_ROLE_BINDINGS, HEALTHY.objects[CLUSTER_ROLE_BINDINGS][1]),
        "right-missing: account gcu/agent: the agent may not get nodes, get pods, create events, ",
    ),
    "a policy that is missing": (
        with_objects(POLICIES, *OTHER_POLICIES),
        "policy-missing: ValidatingAdmissionPolicy agent-claims.gcu.enflame.com: it does not exi",
    ),
    "a policy that is not bound": (
        with_objects(POLICY_BINDINGS, *HEALTHY.objects[POLICY_BINDINGS][1:]),
        "policy-unbound: ValidatingAdmissionPolicy agent-claims.gcu.enflame.com: no binding names",
    ),
    "a mutating policy that is not bound": (
        replace(
            with_objects(MUTATING_POLICIES, {"metadata": {"name": "legacy"}}),
            objects={
                **HEALTHY.objects,
                MUTATING_POLICIES: ({"metadata": {"name": "legacy"}},),
                MUTATING_POLICY_BINDINGS: (),
            },
        ),
        "policy-unbound: MutatingAdmissionPolicy legacy: no binding names it",
    ),
    "no webhook": (
        replace(server(35), objects={**HEALTHY.objects, WEBHOOKS: ()}),
        "webhook-missing: MutatingWebhookConfiguration gcu.enflame.com: it does not exist, and ",
    ),
    "the chart of an older server": (
        with_objects(WEBHOOKS, configured("amounts")),
        "chart-too-old: MutatingWebhookConfiguration gcu.enflame.com: it is for Kubernetes before ",
    ),
    "a policy that somebody edited": (
        with_objects(POLICIES, EDITED, *OTHER_POLICIES),
        (
            "altered: ValidatingAdmissionPolicy agent-claims.gcu.enflame.com: kubectl-edit changed "
            "what helm installed. "
        ),
    ),
}


@pytest.mark.parametrize(("installation", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(installation: Installation, line: str) -> None:
    [found] = found_in(installation)
    assert found.startswith(line)


def test_what_labels_need() -> None:
    first, second = found_in(with_pods(part("agent", "a", GCU_NODE_LABELS="true")))
    assert first.startswith(
        "right-missing: account gcu/agent: the agent may not patch nodes/status"
    )
    assert second.startswith(
        "policy-missing: ValidatingAdmissionPolicy agent-nodes.gcu.enflame.com"
    )


def by_group(group: str) -> Installation:
    first, second = copy.deepcopy(HEALTHY.objects[CLUSTER_ROLE_BINDINGS])
    first["subjects"] = [{"kind": "Group", "name": group}]
    return with_objects(CLUSTER_ROLE_BINDINGS, first, second)


@pytest.mark.parametrize(
    "installation",
    [
        pytest.param(server(37), id="the newest server"),
        pytest.param(server(35, agents(part("agent", "a", GCU_SLICE_FORM="hidden"))), id="hidden"),
        pytest.param(
            with_state(nodes=(node("a"), node("b", info={"kubeletVersion": "v1.30.0"}))),
            id="an old kubelet without cards",
        ),
        pytest.param(
            with_state(
                nodes=(
                    node(
                        "a",
                        info={
                            "kubeletVersion": "v1.36.1+k3s1",
                            "containerRuntimeVersion": "containerd://2.4.2",
                        },
                    ),
                )
            ),
            id="versions that serve",
        ),
        pytest.param(
            with_objects(
                CLUSTER_ROLES,
                *(
                    {
                        **role,
                        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
                    }
                    for role in HEALTHY.objects[CLUSTER_ROLES]
                ),
            ),
            id="all rights",
        ),
        pytest.param(with_rules("agent", of_this_driver), id="a right for the driver's name"),
        pytest.param(
            with_rules("agent", of_any_resource),
            id="subresources of all resources",
        ),
        pytest.param(with_objects(WEBHOOKS), id="no webhook where there are policies"),
        pytest.param(
            with_objects(WEBHOOKS, configured("limits")), id="a webhook for limits without DRA"
        ),
        pytest.param(
            replace(
                server(35),
                objects={**HEALTHY.objects, WEBHOOKS: (configured("amounts"),)},
            ),
            id="a webhook where there are none",
        ),
        pytest.param(by_group("system:serviceaccounts:gcu"), id="a role for a group"),
        pytest.param(
            with_objects(POLICIES, written(POLICY, ("helm", BY_CHART)), *OTHER_POLICIES),
            id="only helm wrote it",
        ),
        pytest.param(
            with_objects(CLUSTER_ROLES, *HEALTHY.objects[CLUSTER_ROLES], ANOTHER_CHARTS),
            id="another chart's object",
        ),
        pytest.param(
            with_objects(
                POLICIES,
                written(POLICY, ("kube-controller-manager", BY_CHART), subresource="status"),
                *OTHER_POLICIES,
            ),
            id="a status",
        ),
        pytest.param(limits("v1.28.15"), id="a kubelet that takes no CDI names, without DRA"),
        pytest.param(limits("v1.30.14", "runtime"), id="injection by the runtime, without DRA"),
    ],
)
def test_nothing_is_wrong(installation: Installation) -> None:
    assert found_in(installation) == []


@pytest.mark.parametrize(
    ("version", "image"),
    [
        ("1.37.1", "registry.k8s.io/kube-scheduler:v1.37.1"),
        ("v1.37.1", "localhost:5000/kube-scheduler:v1.37.1@sha256:0"),
        ("1.37.1+vendor", "kube-scheduler:1.37.1"),
        ("", "registry.k8s.io/kube-scheduler:v1.36.1"),
        ("1.37.1", "registry.k8s.io/kube-scheduler@sha256:0"),
        ("1.37.1", "example.com/my-kube-scheduler:v1.36.1"),
    ],
)
def test_the_same_kube_scheduler_or_none_that_is_known(version: str, image: str) -> None:
    assert found_in(by_scheduler(version, image)) == []
