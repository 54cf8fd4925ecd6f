"""Pods that would have the vendor's runtime give them cards are refused, but for the agents' and
those of listed namespaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.driver import Driver, account, rendered

pytestmark = pytest.mark.control_plane

OURS, OTHER = "vendor-runtime", "another-runtime"
LISTED = "vendor-runtime-listed"
ALL = {"name": "ENFLAME_VISIBLE_DEVICES", "value": "all"}
RESETS = {"name": "ENFLAME_DRIVER_CAPABILITIES", "value": "utility"}
OF_A_FIELD = {
    "name": "ENFLAME_VISIBLE_DEVICES",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
}
HARMLESS = {"name": "ENFLAME_VISIBLE_DEVICES_OF", "value": "all"}


CLASS = f"the RuntimeClass {OURS} gives a pod every GCU of its node"


def container(name: str, *env: Object) -> Object:
    return {"name": name, "image": "none", "env": list(env)}


def user(*env: Object, namespace: str = "default", **spec: object) -> Object:
    """A pod whose only container has these variables, unless the spec says otherwise."""
    made = pod("user", namespace)
    made["spec"].update({"containers": [container("main", *env)]} | spec)
    return made


def device(path: str) -> Object:
    return {"name": path.rpartition("/")[2], "hostPath": {"path": path}}


def refusal(api: Client, made: Object) -> str:
    """What the server says against the pod; empty where it takes it."""
    try:
        api.create(PODS, made, dry_run=True)
    except KubeError as error:
        return str(error)
    return ""


def installed(cluster: Cluster, folder: Path, runtime_class: str) -> str:
    """What helm says against an install with that RuntimeClass; empty where it would install."""
    file = folder / "values.json"
    file.write_text(json.dumps({"efsmi": {"runtimeClassName": runtime_class}}))
    scope = (f"--namespace={DRIVER_NAMESPACE}", "--dry-run=server")
    try:
        cluster.helm("template", RELEASE, str(CHART), *scope, f"--values={file}")
    except CommandError as error:
        return error.output
    return ""


@pytest.fixture(scope="module")
def heeded(
    control_plane: Cluster, api: Client, driver: Driver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The policy, as long as the tests of this file run."""
    values = {
        "efsmi": {"runtimeClassName": OURS},
        "vendorRuntime": {"policy": True, "allowedNamespaces": [LISTED]},
    }
    folder = tmp_path_factory.mktemp("vendor-runtime")
    needed: list[Object] = [
        *(
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": "any",
            }
            for name in (OURS, OTHER)
        ),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LISTED}},
        *(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace},
            }
            for name, namespace in ((account("agent"), "default"), ("user", LISTED))
        ),
        *rendered(control_plane, folder, "policy-vendor-runtime.yaml", values),
    ]
    control_plane.apply(*needed)
    wait_until(lambda: refusal(api, user(ALL)), PATIENCE, "the policy to be heeded")
    yield
    for each in reversed(needed):
        scope = ("--namespace", each["metadata"].get("namespace", "default"))
        names = (each["kind"], each["metadata"]["name"])
        control_plane.kubectl("delete", *names, *scope, "--ignore-not-found", "--wait=false")


REFUSED = {
    "the RuntimeClass": (user(runtimeClassName=OURS), CLASS),
    "the RuntimeClass, in the agents' namespace": (
        user(runtimeClassName=OURS, namespace=DRIVER_NAMESPACE),
        CLASS,
    ),
    "the agents' account of another namespace": (
        user(ALL, runtimeClassName=OURS, serviceAccountName=account("agent")),
        CLASS,
    ),
    "the cards": (user(ALL), "container main sets ENFLAME_VISIBLE_DEVICES: by these variables"),
    "the cards, from a field": (user(OF_A_FIELD), "container main sets ENFLAME_VISIBLE_DEVICES"),
    "the tools": (user(RESETS), "container main sets ENFLAME_DRIVER_CAPABILITIES:"),
    "the tools, in short": (
        user({"name": "DRIVER_CAPABILITIES", "value": "utility"}),
        "container main sets DRIVER_CAPABILITIES:",
    ),
    "another's partition": (
        user({"name": "TOPS_VISIBLE_DEVICES", "value": "DRS-any"}),
        "container main sets TOPS_VISIBLE_DEVICES:",
    ),
    "in several containers": (
        user(
            containers=[container("a", HARMLESS, ALL, RESETS), container("b"), container("c", ALL)]
        ),
        "container a sets ENFLAME_VISIBLE_DEVICES, ENFLAME_DRIVER_CAPABILITIES; container c sets",
    ),
    "a device node": (
        user(volumes=[device("/dev/gcu0"), device("/dev/shm")]),
        "volume gcu0 is the hostPath /dev/gcu0: a GCU that nobody allocated",
    ),
    "a device node, spelled otherwise": (
        user(volumes=[device("//./dev//./gcuctl")]),
        "is the hostPath //./dev//./gcuctl",
    ),
    "in an init container": (
        user(initContainers=[container("before", ALL)]),
        "container before sets ENFLAME_VISIBLE_DEVICES:",
    ),
}


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize(("made", "words"), REFUSED.values(), ids=REFUSED)
def test_a_pod_that_would_take_cards_is_refused(api: Client, made: Object, words: str) -> None:
    said = refusal(api, made)
    assert words in said
    assert "vendorRuntime.allowedNamespaces" in said


TAKEN = {
    "neither": user(HARMLESS),
    "another RuntimeClass": user(runtimeClassName=OTHER),
    "other volumes": user(volumes=[device("/dev"), device("/dev/shm"), device("/data/dev/gcu")]),
    "an agent": user(
        ALL,
        RESETS,
        runtimeClassName=OURS,
        namespace=DRIVER_NAMESPACE,
        serviceAccountName=account("agent"),
    ),
    "a listed namespace": user(
        ALL, RESETS, runtimeClassName=OURS, namespace=LISTED, serviceAccountName="user"
    ),
}


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("made", TAKEN.values(), ids=TAKEN)
def test_others_are_taken(api: Client, made: Object) -> None:
    assert refusal(api, made) == ""


@pytest.mark.usefixtures("heeded")
def test_a_pod_that_runs_gets_no_such_container(
    control_plane: Cluster, api: Client, namespace: str
) -> None:
    """An ephemeral one, as `kubectl debug` adds it."""
    api.create(PODS, user(namespace=namespace))

    def add(name: str, *env: Object) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/user/ephemeralcontainers"
        found = api.get(PODS, "user", namespace=namespace)
        del found["metadata"]["resourceVersion"]  # kube-scheduler changes the pod, too
        found["spec"].setdefault("ephemeralContainers", []).append(container(name, *env))
        control_plane.kubectl("replace", f"--raw={path}", "--filename=-", stdin=json.dumps(found))

    with pytest.raises(CommandError) as refused:
        add("debugger", ALL)
    assert "container debugger sets ENFLAME_VISIBLE_DEVICES:" in refused.value.output
    add("harmless", HARMLESS)


@pytest.mark.usefixtures("heeded")
def test_the_chart_refuses_a_runtime_class_that_is_missing(
    control_plane: Cluster, tmp_path: Path
) -> None:
    assert installed(control_plane, tmp_path, OURS) == ""
    refused = installed(control_plane, tmp_path, "missing")
    assert (
        'efsmi.runtimeClassName is "missing", and the cluster has no such RuntimeClass' in refused
    )
