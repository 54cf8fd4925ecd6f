"""What a command makes of the API server's answers."""

from __future__ import annotations

from controller.cache import pods
from controller.leaderelection.fence import Fence
from controller.write.commands import Answer, LiftGate
from controller.write.writer import Writer
from dra_driver.kube.resources import PODS
from dra_driver.model.names import SCHEDULING_GATE
from tests.fake_api.api import FakeApi
from tests.unit.controller.world import pod


def test_another_pod_of_that_name_keeps_its_gate() -> None:
    """A StatefulSet's next pod comes as soon as the former one is deleted."""
    api = FakeApi()
    gates = [{"name": SCHEDULING_GATE}]
    former = api.put(PODS, pod("p", "c", schedulingGates=gates))
    following = pod("p", "c", schedulingGates=gates)
    following["metadata"]["uid"] = "uid-of-the-following"
    api.put(PODS, following)
    fence = Fence(lambda: 0.0)
    fence.open_until(1.0, "1")
    fence.accept()
    writer = Writer(api, fence, api.server_version)
    assert writer.execute(LiftGate(key=pods.key_of(former), pod=former)) == Answer(pod=None)
    [stored] = api.all(PODS)
    assert stored["spec"]["schedulingGates"] == gates
