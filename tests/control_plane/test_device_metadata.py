"""Device metadata as the library that upstream gives to its readers understands it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError
from tests.cluster.build import Report, build
from tests.cluster.versions import DEVICE_METADATA, PARTS
from tests.unit.node.cdi.device_metadata import ASKED, mounted, of_template
from tests.unit.node.world import World, claim, result


@pytest.fixture(scope="session")
def reader(cluster_report: Report) -> Path:
    return build(PARTS, cluster_report) / DEVICE_METADATA


@pytest.mark.parametrize("pod_claim", ["", "cards"], ids=["claim", "template"])
def test_upstreams_reader_finds_it_valid(tmp_path: Path, reader: Path, pod_claim: str) -> None:
    world = World(tmp_path)
    made: Object = claim("one", result(0, "gcu/big"), result(1, "gcu/big"), config=(ASKED,))
    ref = world.api.add(of_template(made, pod_claim) if pod_claim else made)
    assert not isinstance(world.start().preparer.prepare([ref])[ref.uid], GcuError)
    [file] = mounted(world).values()
    content = Path(file).read_text()
    done = subprocess.run([reader], input=content, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    newest = json.loads(content.splitlines()[0])
    assert found == {"version": "v1beta1", "metadata": newest}
    cut = content.replace("whole-0000", "Whole_0000")
    done = subprocess.run([reader], input=cut, capture_output=True, text=True, check=True)
    assert "requests[0].devices[0].name" in json.loads(done.stdout)["invalid"]
