"""An administrator hears that nodes are not named any more."""

from __future__ import annotations

from controller.nominate.names_stopped import report_names_stopped
from controller.own_pod import OwnPod
from dra_driver.kube.resources import PODS
from tests.fake_api.api import FakeApi
from tests.unit.agent.recorder import ListRecorder


def test_the_event_is_about_the_controllers_pod() -> None:
    api, recorder = FakeApi(), ListRecorder()
    api.put(PODS, {"metadata": {"namespace": "gcu", "name": "controller-1"}, "spec": {}})
    report_names_stopped(recorder, OwnPod(api.client("c"), namespace="gcu", name="controller-1"))
    [line] = recorder.lines
    assert line.startswith("GcuNodeNamesStopped kube-scheduler followed fewer than half")
