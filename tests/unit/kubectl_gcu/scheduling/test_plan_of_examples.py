"""Every example that `kubectl gcu plan` can read fits an empty cluster of two machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dra_driver.model.devices.device import whole_device
from dra_driver.model.devices.device_shares import drs_device, shared_device
from dra_driver.model.names import ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER, DRIVER, pool_name
from tests.control_plane.cards import card, table
from tests.unit.kubectl_gcu.checks.installations import part
from tests.unit.kubectl_gcu.command import gcu

CHECKOUT: Final = Path(__file__).parents[4]
NODES: Final = {"large": (42976, 8), "small": (49120, 4)}
"""By name, its cards' memory in MiB and their number, as on the clusters of tests/e2e."""
# Kinds that the plan refuses: DaemonSets. And pods with limits before a webhook translated them,
# and a claim of two drivers, which this allocator does not serve.
REFUSED: Final = {
    "waiting",
    "administrators-access",
    "by-limits",
    "gcushare",
    "card-and-network-interface",
}
EXAMPLES: Final = sorted(
    path.parent.name
    for path in CHECKOUT.glob("examples/*/README.md")
    if path.parent.name not in REFUSED
)

Object = dict[str, Any]


@pytest.fixture(scope="module", params=[ALLOCATOR_CONTROLLER, ALLOCATOR_SCHEDULER])
def state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved state of the cluster."""
    file = tmp_path_factory.mktemp("state") / "state.json"
    items = list(objects(request.param))
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return file


def objects(allocator: str) -> Iterator[Object]:
    yield {"apiVersion": "v1", "kind": "Pod", **part("agent", "large")}
    for path in CHECKOUT.glob("resourceclasses/*.yaml"):
        made = yaml.safe_load(path.read_text(encoding="utf-8"))
        yield {**made, "metadata": {**made["metadata"], "uid": path.stem}}
    for name, (memory, count) in NODES.items():
        yield node(name)
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name, "uid": f"slice-{name}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": pool_name(name), "generation": 1, "resourceSliceCount": 1},
                "devices": list(devices(memory, count, allocator)),
            },
        }


def node(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}"},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
        },
    }


def devices(memory_mib: int, count: int, allocator: str) -> Iterator[Object]:
    for bus in range(3, 3 + count):
        each = replace(card(bus), memory_mib=memory_mib)
        yield whole_device(each, allocator=allocator, sips=24)
        yield shared_device(each, 6, allocator=allocator, sips=24)
        yield drs_device(each, table(1, 3, 6), allocator=allocator)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_fits(state: Path, name: str) -> None:
    file = CHECKOUT / "examples" / name / f"{name}.yaml"
    code, out, errors = gcu(None, "plan", "-f", str(file), "--state", str(state))
    assert (code, errors) == (0, ""), out
    assert ": node " in out
