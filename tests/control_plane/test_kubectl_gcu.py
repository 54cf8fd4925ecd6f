"""`kubectl gcu` with the rights of a user who may read one namespace."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from kubectl_gcu.main import PARTIAL, WAITS, run
from tests.cluster.cluster import Cluster
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, shared, whole

pytestmark = pytest.mark.control_plane


def test_a_tenant_sees_its_own_claims_and_no_other_ones(
    scene: Scene, controller: ControllerProcess, tenant: Path
) -> None:
    node = scene.machines.add([whole(0), shared(1)])
    scene.hands.start("mine")
    scene.eyes.bound("mine")
    scene.api.create(RESOURCE_CLAIMS, claim("theirs", "default"))
    out, errors = io.StringIO(), io.StringIO()
    arguments = [f"--kubeconfig={tenant}", f"--namespace={scene.namespace}", "-o=json"]
    code = run(["inspect", node, *arguments], {}, out, errors)
    scene.api.delete(RESOURCE_CLAIMS, "theirs", namespace="default")
    assert code == PARTIAL
    assert "you may not list nodes: " in errors.getvalue()
    assert "you may not list resourceclaims in all namespaces: " in errors.getvalue()
    found: Object = json.loads(out.getvalue())
    [shown] = found["nodes"]
    held = [holder for card in shown["cards"] for holder in card["holders"]]
    assert [each["claim"] for each in held] == [f"{scene.namespace}/mine"]
    assert [pod["name"] for pod in held[0]["pods"]] == ["mine"]


def test_a_tenant_is_told_why_its_pod_waits_and_not_for_whom(
    scene: Scene, controller: ControllerProcess, tenant: Path, control_plane: Cluster
) -> None:
    scene.machines.add([whole(0)])
    scene.hands.start("holder")
    scene.eyes.bound("holder")
    scene.hands.start("waits")
    scene.wait_for_event("waits", "1 requested")
    explain = ["explain", "pod", "waits", f"--namespace={scene.namespace}"]
    out, errors = io.StringIO(), io.StringIO()
    assert run([*explain, f"--kubeconfig={tenant}"], {}, out, errors) == WAITS
    assert "1 requested" in out.getvalue()
    assert "holder" not in out.getvalue()
    assert errors.getvalue().startswith("warning: you may not list ")
    out = io.StringIO()
    assert run([*explain, f"--kubeconfig={control_plane.kubeconfig}"], {}, out, errors) == WAITS
    helps = f"it fits when any one of these claims ends: {scene.namespace}/holder"
    assert helps in out.getvalue()
