"""The command `kubectl gcu plan`: its flags, its output and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.api import Listing
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.names import RESOURCE_SHARED
from kubectl_gcu.main import FAILED, WAITS
from tests.unit.controller.world import pod
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.manifests import TWO, limited, single, spec, template
from tests.unit.kubectl_gcu.server import HELD, Server, cluster

SAVED = (
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
)


def saved(file: Path, server: Any, *, without: Resource | None = None) -> Path:
    """The file, with what `kubectl get -A` prints of these kinds."""
    items = [
        {"apiVersion": kind.api_version, "kind": kind.kind} | each
        for kind in SAVED
        for each in server.list(kind).items
        if kind != without
    ]
    file.write_text(json.dumps({"kind": "List", "items": items}))
    return file


def test_on_a_saved_state(tmp_path: Path) -> None:
    """No server is asked."""
    server = cluster((RESOURCE_CLAIM_TEMPLATES, template("two", TWO)))
    state, manifest = saved(tmp_path / "state.json", server), tmp_path / "pods.json"
    pods = [single(spec(resourceClaimTemplateName=name)) for name in ("two", "nobody")]
    manifest.write_text(json.dumps({"kind": "List", "items": pods}))

    def run(of: Path) -> tuple[int, str, str]:
        return gcu(None, "plan", f"--file={manifest}", f"--state={of}")

    code, out, _ = run(state)
    assert (code, out.splitlines()[:2]) == (
        WAITS,
        [
            "pod default/p: node b: shared-0000-02-00-0 (slices 2)",
            "pod default/p: does not fit: there is no ResourceClaimTemplate default/nobody",
        ],
    )
    code, _, errors = run(manifest)
    assert code == FAILED
    assert "has no resourceslices, deviceclasses, nodes; save them with kubectl get" in errors
    assert run(tmp_path / "nowhere")[0] == FAILED


HOLDER = pod("holder", HELD["metadata"]["name"], status={"phase": "Running"})
OF_ALL = "; save them with kubectl get resourceslices,deviceclasses,namespaces,nodes,"


@pytest.mark.parametrize(
    ("server", "without", "words"),
    [
        pytest.param(cluster(), PODS, f"has no pods{OF_ALL}", id="no pods"),
        pytest.param(
            cluster((PODS, HOLDER)),
            RESOURCE_CLAIMS,
            f"has no resourceclaims, and running pods have some{OF_ALL}",
            id="no claims",
        ),
        pytest.param(
            Server(
                *((kind, each) for kind in SAVED[:3] for each in cluster().list(kind).items),
                (PODS, HOLDER),
            ),
            None,
            f"has no pod of this driver, and so not all namespaces{OF_ALL}",
            id="one namespace",
        ),
    ],
)
def test_an_incomplete_state_is_refused(
    tmp_path: Path, server: Any, without: Resource | None, words: str
) -> None:
    """Held cards would look free."""
    state, manifest = saved(tmp_path / "state.json", server, without=without), tmp_path / "pod.json"
    manifest.write_text(json.dumps(single(limited(**{RESOURCE_SHARED: "2"}))))
    code, out, errors = gcu(None, "plan", f"--file={manifest}", f"--state={state}")
    assert (code, out) == (FAILED, "")
    assert errors.startswith(f"error: {state} {words}")


def test_an_object_without_a_uid_in_a_state(tmp_path: Path) -> None:
    state, manifest = saved(tmp_path / "state.json", cluster()), tmp_path / "pod.json"
    items = json.loads(state.read_text())["items"]
    for each in items:
        if each["kind"] == "Pod":
            del each["metadata"]["uid"]
    state.write_text(json.dumps({"kind": "List", "items": items}))
    manifest.write_text(json.dumps(single(limited(**{RESOURCE_SHARED: "2"}))))
    code, _, errors = gcu(None, "plan", f"--file={manifest}", f"--state={state}")
    assert (code, errors) == (FAILED, "error: Pod controller has no 'uid'\n")


def test_the_command(tmp_path: Path) -> None:
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(
        f"kind: Pod\nmetadata: {{name: p}}\nspec: {json.dumps(limited(**{RESOURCE_SHARED: '2'}))}\n"
        "---\n"
    )
    code, out, _ = gcu(cluster(), "plan", f"--file={manifest}")
    assert (code, out.splitlines()) == (
        0,
        [
            "pod default/p: node b: shared-0000-02-00-0 (slices 2)",
            "then: 2 cards: 0 free, 1 whole, 1 shared (4 of 6 slices)",
            "packing: the chart's defaults, as no pod of the controller says what it has",
        ],
    )
    beside = "---\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main}]}\n"
    manifest.write_text(manifest.read_text() + beside)
    code, out, _ = gcu(cluster(), "plan", f"--file={manifest}")
    assert (code, out.splitlines()[1]) == (0, "pod default/web: asks for no GCU")
    manifest.write_text(manifest.read_text().replace('"2"', '"5"'))
    code, out, _ = gcu(cluster(), "plan", f"--file={manifest}", "--output=json")
    assert (code, json.loads(out)["pods"][0]["node"]) == (WAITS, "")
    code, _, errors = gcu(cluster(forbidden=[PODS]), "plan", f"--file={manifest}")
    assert (code, errors) == (
        FAILED,
        "error: you may not list pods in the whole cluster, and so nothing can be planned\n",
    )
    code, _, errors = gcu(cluster(), "plan", f"--file={tmp_path}/nowhere")
    assert (code, errors.startswith(f"error: {tmp_path}/nowhere cannot be read")) == (FAILED, True)


class WithoutDra(Server):
    """An API server before Kubernetes 1.34."""

    def list(self, resource: Resource, **more: Any) -> Listing:
        if resource.api_version.startswith("resource.k8s.io/"):
            raise NotFound("404 page not found", status=404)
        return super().list(resource, **more)


def test_without_dra_nothing_can_be_planned(tmp_path: Path) -> None:
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(single(limited(**{RESOURCE_SHARED: "2"}))))
    code, _, errors = gcu(WithoutDra(), "plan", f"--file={manifest}")
    assert (code, errors) == (
        FAILED,
        (
            "error: the API server has no resourceslices of resource.k8s.io/v1, and so nothing can "
            "be planned\n"
        ),
    )
