"""The examples of docs/user/groups.md: the pods of each are bound together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dra_driver.kube.resources import NODES, PODS
from tests.cluster.waiting import wait_until
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.nominating import controller, followed, machines, nominating
from tests.control_plane.pod_groups import LIMIT, OUR_GATE

pytestmark = pytest.mark.control_plane

__all__ = ["controller", "nominating"]  # fixtures

PAGE: Final = Path(__file__).parents[3] / "docs/user/groups.md"
EXAMPLES: Final = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def gated(example: str) -> Iterator[dict[str, Any]]:
    """The objects as they are once the webhook, which is not here, has set the gate on pods."""
    for found in yaml.safe_load_all(example):
        if found["kind"] == "Pod":
            found["spec"]["schedulingGates"] = OUR_GATE
        elif found["kind"] == "Job":
            found["spec"]["template"]["spec"]["schedulingGates"] = OUR_GATE
        yield found


@pytest.mark.parametrize(
    ("example", "pods", "nodes"),
    list(zip(EXAMPLES, (4, 3, 2), (2, 2, 1), strict=True)),
    ids=["gang", "two kinds", "one rack"],
)
def test_an_example_is_bound_on_few_nodes(
    scene: Scene, controller: ControllerProcess, example: str, pods: int, nodes: int
) -> None:
    """There are three nodes with four cards each."""
    for number, node in enumerate(machines(scene, 3, *range(4))):
        labels = {"rack": f"r{number}"}
        scene.api.patch(NODES, node, {"metadata": {"labels": labels}})
    for each in gated(example):
        each["metadata"]["namespace"] = scene.namespace
        scene.cluster.apply(each)

    def bound() -> list[str]:
        found = scene.api.list(PODS, namespace=scene.namespace).items
        return [str(pod["spec"].get("nodeName") or "") for pod in found]

    wait_until(
        lambda: len(bound()) == pods and all(bound()), LIMIT, "all bound", seen=lambda: str(bound())
    )
    assert len(set(bound())) == nodes
    # Of equal racks kube-scheduler takes any, whatever is named.
    expected = {0.0, float(pods)} if "topology:" in example else {float(pods)}
    assert followed(controller, pods) in expected
