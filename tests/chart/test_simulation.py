"""The init container that makes a simulated machine: its script is run for real."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import Object
from tests.chart.helm import Helm, Values

DESCRIPTION = "cards:\n- {bdf: 0000:03:00.0, model: S60}\n"


def machines(**simulation: object) -> Values:
    return {"simulation": {"enabled": True, **simulation}}


@pytest.fixture
def simulator(tmp_path: Path) -> Path:
    """A folder for PATH with a `gcu-simulator` that says how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "gcu-simulator"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    return folder


def create(rendered_agent: Object, data: dict[str, str], node: str, simulator: Path) -> list[str]:
    """The words that the script calls the simulator with on a node."""
    folder = simulator.parent / "config"
    folder.mkdir()
    for name, text in data.items():
        (folder / name).write_text(text)
    [container] = rendered_agent["initContainers"]
    done = subprocess.run(
        container["command"],
        cwd=folder,
        env={"PATH": f"{simulator}:{os.environ['PATH']}", "NODE_NAME": node},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("values", "machine"),
    [
        (machines(), "s60-ecc-8"),
        (machines(machine="mixed-t20"), "mixed-t20"),
        (machines(nodes={"node-2": "s60-4"}), "s60-ecc-8"),
        (machines(nodes={"node-1": "s60-4", "node-2": DESCRIPTION}), "s60-4"),
        (machines(nodes={"node-1": DESCRIPTION}), "node-1.yaml"),
        (machines(machine=DESCRIPTION), "_default.yaml"),
        (machines(machine=DESCRIPTION, nodes={"node-1": "s60-4"}), "s60-4"),
    ],
    ids=[
        "the default",
        "another default",
        "another node's is not mine",
        "a node's name of a machine",
        "a node's description",
        "a description for all",
        "a node's comes before all nodes'",
    ],
)
def test_a_node_gets_its_machine(helm: Helm, simulator: Path, values: Values, machine: str) -> None:
    rendered = helm.render(values)
    data = rendered.one("ConfigMap", "simulation")["data"]
    words = create(rendered.agent, data, "node-1", simulator)
    root = "/var/lib/gcu-simulator"
    assert words == ["create", "--machine", machine, "--root", root, "--identity", "node-1"]


def test_a_description_arrives_as_it_was_written(helm: Helm) -> None:
    data = helm.render(machines(nodes={"node-1": DESCRIPTION})).one("ConfigMap", "simulation")[
        "data"
    ]
    assert data["node-1.yaml"] == DESCRIPTION


def test_a_machine_is_replaced_only_on_request(helm: Helm, simulator: Path) -> None:
    rendered = helm.render(machines(replace=True))
    data = rendered.one("ConfigMap", "simulation")["data"]
    assert create(rendered.agent, data, "node-1", simulator)[-1] == "--replace"


def test_it_may_make_device_nodes_and_nothing_else(helm: Helm) -> None:
    [container] = helm.render(machines()).agent["initContainers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["MKNOD"]},
    }


def test_other_machines_make_new_pods(helm: Helm) -> None:
    def annotations(values: Values) -> Object:
        found: Object = helm.render(values).one("DaemonSet", "-agent")["spec"]["template"][
            "metadata"
        ]
        return found

    assert annotations(machines()) == annotations(machines())
    assert annotations(machines()) != annotations(machines(nodes={"node-1": "s60-4"}))


def test_a_real_cluster_has_nothing_of_it(helm: Helm) -> None:
    rendered = helm.render()
    assert not any("simulation" in each["metadata"]["name"] for each in rendered.of("ConfigMap"))
    assert "initContainers" not in rendered.agent
