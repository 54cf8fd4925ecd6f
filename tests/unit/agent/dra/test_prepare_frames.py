"""How deep a call of the kubelet is, from the servicer to what it changes."""

from __future__ import annotations

import traceback
from pathlib import Path

from dra_driver.kubelet_api.dra.claim_service import ClaimService
from dra_driver.kubelet_api.dra.service import Servicer
from dra_driver.kubelet_api.generated import dra_v1_pb2 as api
from dra_driver.model import effects as seam
from dra_driver.model.card import Card
from dra_driver.model.effects import Effects, Point
from dra_driver.model.mode import Mode
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.modes.driver import WholeCard
from tests.unit.kubelet_api.callers import Caller, Observer
from tests.unit.node.world import World, claim, result

SOURCE = Path(seam.__file__).parents[1]


def frames() -> list[str]:
    """Where the driver's frames are, from the servicer on. Entering an effect is no frame of a
    call: production code does nothing there."""
    stack = [Path(frame.filename) for frame in traceback.extract_stack()]
    return [
        str(path.relative_to(SOURCE).with_suffix(""))
        for path in stack
        if path.is_relative_to(SOURCE) and path != Path(seam.__file__)
    ]


class Recorder(Effects):
    def __init__(self) -> None:
        self.frames: dict[Point, list[str]] = {}

    def before(self, point: Point) -> None:
        self.frames[point] = frames()


class RecordingMode(WholeCard):
    def __init__(self) -> None:
        self.frames: list[str] = []

    def create(self, device: PreparedDevice, _card: Card, /) -> PreparedDevice:
        self.frames = frames()
        return device


def test_a_prepare_passes_six_frames(tmp_path: Path) -> None:
    recorder, mode = Recorder(), RecordingMode()
    world = World(tmp_path, steps={Mode.WHOLE: mode})
    ref = world.api.add(claim("one", result(0)))
    agent = world.start(recorder)
    servicer = Servicer(ClaimService(agent.preparer, Observer(), recorder))
    asked = api.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid)
    answer = servicer.NodePrepareResources(
        api.NodePrepareResourcesRequest(claims=[asked]), Caller().context
    )
    assert not answer.claims[ref.uid].error
    call = [
        "kubelet_api/dra/service",
        "kubelet_api/dra/claim_service",
        "node/preparer",
        "node/claims/manager",
    ]
    assert recorder.frames[Point.CDI_WRITE] == [*call, "node/cdi/files", "node/cdi/directory"]
    assert mode.frames == [*call, "node/claims/device_ops"]
