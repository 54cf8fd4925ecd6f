"""An administrator finds what the controller reports by its pod."""

from __future__ import annotations

from controller.nominate.followed_names import NAMES_STOPPED, NAMES_STOPPED_NOTE
from controller.own_pod import OwnPod
from dra_driver.kube.events import EventType
from dra_driver.kube.resources import PODS
from tests.fake_api.api import FakeApi
from tests.unit.agent.recorder import ListRecorder


def test_the_event_is_about_the_controllers_pod() -> None:
    api, recorder = FakeApi(), ListRecorder()
    pod = api.put(PODS, {"metadata": {"namespace": "gcu", "name": "controller-1"}, "spec": {}})
    own_pod = OwnPod(api.client("c"), recorder, namespace="gcu", name="controller-1")
    own_pod.report(NAMES_STOPPED, NAMES_STOPPED_NOTE, "NameNode")
    [line] = recorder.lines
    assert line.startswith("GcuNodeNamesStopped kube-scheduler followed fewer than half")
    [(regarding, kind, _)] = recorder.recorded
    assert regarding["metadata"]["uid"] == pod["metadata"]["uid"]
    assert kind is EventType.WARNING
