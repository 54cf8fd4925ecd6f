"""The command `kubectl gcu plan`: its flags, its output and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.manifests import TWO, limited, single, spec, template
from tests.unit.kubectl_gcu.server import Server, cluster


def test_on_a_saved_state(tmp_path: Path) -> None:
    """No server is asked."""
    server = cluster((RESOURCE_CLAIM_TEMPLATES, template("two", TWO)))
    kinds = (RESOURCE_SLICES, DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
    items = [
        {"apiVersion": kind.api_version, "kind": kind.kind} | each
        for kind in kinds
        for each in server.list(kind).items
    ]
    state, manifest = tmp_path / "state.json", tmp_path / "pods.json"
    state.write_text(json.dumps({"kind": "List", "items": items}))
    pods = [single(spec(resourceClaimTemplateName=name)) for name in ("two", "nobody")]
    manifest.write_text(json.dumps({"kind": "List", "items": pods}))

    def run(saved: Path) -> tuple[int, str, str]:
        return gcu(None, "plan", f"--file={manifest}", f"--state={saved}")

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
